package secrets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// bzipped is a text with a token that chance made; the standard library reads bzip2 alone.
const bzipped = "QlpoOTFBWSZTWbIDeF8AAA9fgAAQQABKQiFnGqCD7/xwIABUUmRpppiYTIwINNDDRoGgPUw0g2U9QcuotTz2EbicuC" +
	"qdBbqLUkD0Ue49bFZ29FmUQkYSYjD5W+Z3al7/i7kinChIWQG8L4A="

func zipped(name, text string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.Create("README.txt")
	w, _ := z.Create(name)
	w.Write([]byte(text))
	z.Close()
	return b.String()
}

func tarred(name, text string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644})
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func zstded(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func picture(kind, text string) string {
	chunk := func(kind, data string) string {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(kind+data)))
		return string(head) + kind + data + string(sum)
	}
	return "\x89PNG\r\n\x1a\n" + chunk("IHDR", "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00") + chunk(kind, text) + chunk("IEND", "")
}

// Covers S25: in archives, in one another, in pictures and documents.
func TestPacked(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(31, 32))}
	prose := "" // without which zstd would not find it worth packing
	for i := range 400 {
		prose += fmt.Sprintf("line %d of %d\n", i*i%397, i*7%100)
	}
	for range 5 {
		secret := m.seeds()["github-token personal"]
		text := "first line\ntoken = " + secret + "\n"
		for form, content := range map[string]string{
			"zip": zipped("conf/app.properties", text), "zip, twice": zipped("in.zip", zipped("a", text)), "the name of a file in a zip": zipped(secret, "x"),
			"a zip of a tar of gzip": zipped("a.tar.gz", gzipped(tarred("a", text))), "tar": tarred("a", text), "the name in a tar": tarred(secret, "x"),
			"gzip in a tar": tarred("a.gz", gzipped(text)), "tgz": gzipped(tarred("a", text)), "zlib": deflated(text), "gzip, twice": gzipped(gzipped(text)),
			"zstd": zstded(prose + text), "zstd of a tar": zstded(tarred("a", prose+text)),
			"an office document": zipped("word/document.xml", "<w:t>"+secret[:20]+"</w:t></w:r><w:r><w:t>"+secret[20:]+"</w:t>"),
			"a picture":          picture("tEXt", "Comment\x00"+secret), "a picture, packed": picture("zTXt", "Comment\x00\x00"+deflated(secret)),
			"a document": "%PDF-1.4\n1 0 obj<</Filter/FlateDecode>>stream\n" + deflated("("+secret+") Tj") + "\nendstream endobj\n%%EOF\n",
		} {
			if hits := New().Scan("f", []byte(content)); len(hits) == 0 {
				t.Errorf("in %s it is not found", form)
			}
		}
	}
	packed, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	if hits := New().Scan("f", packed); len(hits) != 1 || hits[0].Line != 2 {
		t.Errorf("in bzip2: %+v", hits)
	}
}

// What is packed takes no more than its share, however much it would become.
func TestPackedBombs(t *testing.T) {
	t.Parallel()
	big := gzipped(strings.Repeat("0", 4*mostInflated))
	var many bytes.Buffer
	z := zip.NewWriter(&many)
	for i := range 20 {
		w, _ := z.Create(fmt.Sprint(i))
		w.Write([]byte(big))
	}
	z.Close()
	for name, content := range map[string][]byte{"gzip": []byte(big), "many in a zip": many.Bytes(), "twice": []byte(gzipped(big)),
		"zstd": []byte(zstded(strings.Repeat("0", 4*mostInflated)))} {
		if n := len(plain(content)); n > mostInflated+1000 {
			t.Errorf("%s: %d bytes are looked at; want %d at most", name, n, mostInflated)
		}
	}
	u := unpacker{left: mostInflated}
	if u.pdf([]byte("%PDF-" + strings.Repeat("stream\x78\x9c\x07", 2*mostEntries))); u.reads > mostEntries+1 {
		t.Errorf("%d streams are read; want %d at most", u.reads, mostEntries)
	}
	late := base64.StdEncoding.EncodeToString([]byte(gzipped(strings.Repeat("0", 2*mostDecoded) + " ghp_" + maker{rand.New(rand.NewPCG(1, 35))}.of(word, 36))))
	if hits := New().Scan("f", []byte(late)); len(hits) > 0 {
		t.Errorf("%d bytes of base64 are read as 2 MiB: %+v", len(late), hits)
	}
	deep := "x"
	for range 2 * mostPacked {
		deep = gzipped(deep)
	}
	if got := string(plain([]byte(deep))); got == "x" {
		t.Error("what is packed too deep is opened")
	}
}

// Covers S25: coded in other ways, and in pieces.
func TestCoded(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(33, 34))}
	code := base64.StdEncoding.EncodeToString
	for _, name := range []string{"github-token personal", "anthropic-key", "stripe-key live", "npm-token"} {
		secret := m.seeds()[name]
		each := func(format, between string) string {
			var all []string
			for i := range len(secret) {
				all = append(all, fmt.Sprintf(format, secret[i]))
			}
			return strings.Join(all, between)
		}
		pairs := func(between string) string {
			return strings.TrimSuffix(strings.ReplaceAll(each("%02x"+between, ""), "\n", ""), between)
		}
		half, b := len(secret)/2, []byte(secret)
		for form, text := range map[string]string{
			"base64 twice": code([]byte(code(b))), "gzip in base64": code([]byte(gzipped(secret))), "zlib in base64": code([]byte(deflated(secret))),
			"base32": strings.TrimRight(base32.StdEncoding.EncodeToString(b), "="), "base64 of hexadecimal": code([]byte(hex.EncodeToString(b))),
			"base64 in short lines": "\n" + wrap(code(b), 10) + "\n", "base64 and another line": "\n" + code([]byte("k="+secret)) + "\nnext\n",
			"hexadecimal with colons": pairs(":"), "hexadecimal with blanks": pairs(" "), "hexadecimal with dashes": pairs("-"),
			"hexadecimal numbers": each("0x%02x", ", "), "numbers": "String.fromCharCode(" + each("%d", ",") + ")",
			"numbers in lines":  "[\n" + each("  %d", ",\n") + "\n]",
			"single characters": "[" + each("'%c'", ", ") + "].join('')", "a character a line": "\n" + each("%c", "\n") + "\n", "with blanks": each("%c", " "),
			"escapes, escaped": `{"k": "` + each(`\\u%04x`, "") + `"}`, "entities": each("&#x%02x;", ""),
			"two variables":       `const p="` + secret[:half] + `";` + "\n" + `const q="` + secret[half:] + `";`,
			"three variables":     "x=\"" + secret[:9] + "\"\ny=\"" + secret[9:half] + "\"\nz=\"" + secret[half:] + "\"\n",
			"a template":          `const p="` + secret[:8] + `";const k=` + "`${p}" + secret[8:] + "`;",
			"a line that goes on": "K=" + secret[:half] + "\\\n" + secret[half:] + "\n",
		} {
			hits := New().Scan("f", []byte("first line\nvalue: "+text+" end\n"))
			if len(hits) == 0 {
				t.Errorf("%s, %s: not found in %q", name, form, text)
			}
		}
	}
}
