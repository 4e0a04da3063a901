package secrets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"forge/pipeline/lazyregexp"
)

const (
	mostInflated = 8 << 20 // how much of what a file holds is looked at, all that is packed in it together
	mostPacked   = 4       // so deep in one another
	mostEntries  = 10_000  // so many parts
	mostRatio    = 100     // of a text within another: so many times its size
)

// plain is a file's text where it is stored in another form: in UTF-16, compressed, or in
// an archive, also one in another. What is too much of it is not looked at.
func plain(content []byte) []byte {
	u := unpacker{left: mostInflated}
	if text := u.unpack(content, mostPacked); text != nil {
		return text
	}
	return content
}

// unpacker takes apart what is packed, as long as something is left of what it may read.
type unpacker struct {
	left  int // bytes
	reads int
}

func (u *unpacker) read(r io.Reader) []byte {
	if u.reads++; u.reads > mostEntries {
		u.left = 0
	}
	text, _ := io.ReadAll(io.LimitReader(r, int64(u.left))) // of what is broken, what came before it
	u.left -= len(text)
	return text
}

// inner is what was read, and what that holds in turn.
func (u *unpacker) inner(text []byte, depth int) []byte {
	if in := u.unpack(text, depth-1); in != nil {
		return in
	}
	return text
}

// unpack returns the text in what is packed, nil if it is not.
func (u *unpacker) unpack(content []byte, depth int) []byte {
	if depth == 0 || u.left <= 0 || len(content) < 8 {
		return nil
	}
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(content, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(bytes.NewReader(content))
	case bytes.HasPrefix(content, []byte("BZh")):
		r = bzip2.NewReader(bytes.NewReader(content))
	case content[0] == 0x78 && (int(content[0])<<8|int(content[1]))%31 == 0:
		r, err = zlib.NewReader(bytes.NewReader(content))
	case bytes.HasPrefix(content, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(bytes.NewReader(content), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostInflated))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return u.zip(content, depth)
	case len(content) > 262 && string(content[257:262]) == "ustar":
		return u.tar(content, depth)
	case bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")):
		return u.png(content)
	case bytes.HasPrefix(content, []byte("%PDF-")):
		return u.pdf(content)
	default:
		return fromUTF16(content)
	}
	if err != nil {
		return nil
	}
	if text := u.read(r); len(text) > 0 {
		return u.inner(text, depth)
	}
	return nil
}

var tags = lazyregexp.New(`<[^<>]*>`)

func (u *unpacker) zip(content []byte, depth int) []byte {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil
	}
	var all bytes.Buffer
	for i, f := range z.File {
		all.WriteString(f.Name + "\n" + f.Comment + "\n")
		if i == mostEntries || u.left <= 0 {
			break
		}
		r, err := f.Open()
		if err != nil { // another compression, or a password
			continue
		}
		text := u.inner(u.read(r), depth)
		r.Close()
		all.Write(text)
		if strings.HasSuffix(f.Name, ".xml") && strings.Contains(f.Name, "/") { // an office document's text is in pieces
			all.WriteString("\n" + tags.ReplaceAllString(string(text), ""))
		}
		all.WriteByte('\n')
	}
	return all.Bytes()
}

func (u *unpacker) tar(content []byte, depth int) []byte {
	var all bytes.Buffer
	r := tar.NewReader(bytes.NewReader(content))
	for range mostEntries {
		h, err := r.Next()
		if err != nil || u.left <= 0 {
			break
		}
		all.WriteString(h.Name + "\n" + h.Linkname + "\n")
		all.Write(u.inner(u.read(r), depth))
		all.WriteByte('\n')
	}
	return all.Bytes()
}

// png returns the texts in a picture; what else it holds is looked at as it is.
func (u *unpacker) png(content []byte) []byte {
	all := bytes.Clone(content)
	for at := 8; at+12 <= len(content) && u.left > 0; {
		size := int(binary.BigEndian.Uint32(content[at:]))
		if size < 0 || at+12+size > len(content) {
			break
		}
		data := content[at+8 : at+8+size]
		if _, packed, ok := bytes.Cut(data, []byte("\x00\x00")); ok && string(content[at+4:at+8]) == "zTXt" {
			if r, err := zlib.NewReader(bytes.NewReader(packed)); err == nil {
				all = append(append(all, '\n'), u.read(r)...)
			}
		}
		at += 12 + size
	}
	return all
}

// pdf adds the streams of a document that zlib can read.
func (u *unpacker) pdf(content []byte) []byte {
	all := bytes.Clone(content)
	for rest := content; u.left > 0; {
		_, after, ok := bytes.Cut(rest, []byte("stream"))
		if !ok {
			break
		}
		rest = after
		if r, err := zlib.NewReader(bytes.NewReader(bytes.TrimLeft(after, "\r\n"))); err == nil {
			all = append(append(all, '\n'), u.read(r)...)
		}
	}
	return all
}

// fromUTF16 returns the text of what is in UTF-16, nil if it is not: there, of each two
// bytes the same one is zero.
func fromUTF16(content []byte) []byte {
	if len(content) < 32 {
		return nil
	}
	zeros := [2]int{}
	for i, c := range content[:32] {
		if c == 0 {
			zeros[i%2]++
		}
	}
	if max(zeros[0], zeros[1]) < 12 || min(zeros[0], zeros[1]) > 1 {
		return nil
	}
	big := zeros[0] > zeros[1]
	units := make([]uint16, 0, len(content)/2)
	for i := 0; i+1 < len(content); i += 2 {
		unit := uint16(content[i]) | uint16(content[i+1])<<8
		if big {
			unit = unit<<8 | unit>>8
		}
		units = append(units, unit)
	}
	return []byte(string(utf16.Decode(units)))
}
