package evaluate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// readAll reads files of JSON objects, also compressed with gzip. check looks at each,
// with its number in the file.
func readAll[T any](files []string, what string, check func(n int, x *T) error) ([]T, error) {
	var out []T
	for _, name := range files {
		list, err := readLines(name, check)
		if err != nil {
			return nil, fmt.Errorf("read the %s of %s: %w", what, name, err)
		}
		out = append(out, list...)
	}
	return out, nil
}

func readLines[T any](name string, check func(n int, x *T) error) (out []T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReader(z)
	}
	dec := json.NewDecoder(in)
	for {
		var x T
		if err := dec.Decode(&x); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(out)+1, err)
		}
		if err := check(len(out)+1, &x); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
}
