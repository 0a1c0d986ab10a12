package safetensors

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/disk"
)

// file is a safetensors file with that header and n bytes of data.
func file(header string, n int) []byte {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	raw = append(raw, header...)
	for i := range n {
		raw = append(raw, byte(i))
	}
	return raw
}

func TestTensorsAreFoundWhereTheHeaderPutsThem(t *testing.T) {
	tensors, err := parse(disk.InMemory(file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[],"data_offsets":[12,13]},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}  `, 13)))
	if err != nil || len(tensors) != 2 {
		t.Fatalf("%d tensors, %v", len(tensors), err)
	}
	a, b := &tensors[0], &tensors[1]
	raw := make([]byte, 12)
	if err := a.Source.Read(raw, a.Offset); err != nil || a.Name != "a" || a.Len() != 6 || a.Bytes() != 12 || raw[0] != 0 || raw[11] != 11 {
		t.Errorf("%+v has %v, %v", a, raw, err)
	}
	if err := b.Source.Read(raw[:1], b.Offset); err != nil || b.Name != "b" || b.Len() != 1 || raw[0] != 12 {
		t.Errorf("%+v has %v, %v", b, raw[:1], err)
	}
}

func TestAFileThatContradictsItselfIsRefusedWithTheTensorsName(t *testing.T) {
	entry := func(dtype, shape, offsets string) string {
		return `"a":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}`
	}
	of := func(entries ...string) []byte { return file("{"+strings.Join(entries, ",")+"}", 8) }
	good := entry("F16", "[2,2]", "[0,8]")
	for _, c := range []struct {
		raw  []byte
		want string
	}{
		{nil, "0 bytes are too few"},
		{[]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "a header of 18446744073709551615 bytes, 2 are left"},
		{file("{}", 0)[:9], "a header of 2 bytes, 1 are left"},
		{file("[]", 0), "no JSON object"},
		{file(`{"a":`, 0), `tensor "a": malformed safetensors: EOF`},
		{of(good)[:len(of(good))-1], `tensor "a": malformed safetensors: the shape [2 2] is empty, or more than the 7 bytes`},
		{append(of(good), 1), "1 bytes of data belong to no tensor"},
		{file("{"+good+"} {}", 8), "something follows"},
		{of(good, good), `tensor "a" occurs twice`},
		{of(entry("F13", "[2,2]", "[0,8]")), `the dtype "F13" is not known`},
		{of(entry("F16", "[2,2]", "[0,6]")), "want 8 bytes"},
		{of(entry("F16", "[2,2]", "[8,0]")), "data_offsets [8 0]"},
		{of(entry("F16", "[2,2]", "[0,8,9]")), "data_offsets are not two"},
		{of(entry("F16", "[2,2]", "[1,9]")), "data_offsets [1 9]"},
		{of(entry("U8", "[7]", "[1,8]")), "begins at byte 1 of the data, where the one before ends at 0"},
		{of(entry("F16", "[-2,2]", "[0,8]")), "cannot unmarshal number -2"},
		{of(entry("F16", "[4294967296,4294967296]", "[0,8]")), "more than the 8 bytes"},
		{of(entry("F16", "[0,2]", "[0,0]")), "is empty"},
		{of(entry("F16", "[1,1,1,1,1,1,1,1,4]", "[0,8]")), "9 dimensions"},
		{of(entry("U8", "[6]", "[0,6]"), strings.Replace(entry("U8", "[4]", "[4,8]"), "a", "b", 1)), `tensor "b": malformed safetensors: it begins at byte 4 of the data, where the one before ends at 6`},
		{of(`"` + strings.Repeat("x", 600) + `":{}`), "600 bytes, at most 512"},
	} {
		_, err := parse(disk.InMemory(c.raw))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q gave %v, want an error that says %q", c.raw, err, c.want)
		}
	}
}

func TestAnIndexAndItsFilesBelongTogether(t *testing.T) {
	one := func(name string) []byte {
		return file(`{"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1)
	}
	for _, c := range []struct {
		index string
		want  string // ""; no error
	}{
		{`{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`, ""},
		{`{"weight_map":{"a":"1.safetensors","c":"2.safetensors"}}`, `tensor "c" is not in 2.safetensors`},
		{`{"weight_map":{"a":"1.safetensors","b":"3.safetensors"}}`, "3.safetensors"},
		{`{"weight_map":{"a":"1.safetensors","b":"again.safetensors"}}`, `again.safetensors: tensor "a": malformed safetensors: it is in another file too`},
		{`{"weight_map":{"a":"../1.safetensors"}}`, `tensor "a" is in "../1.safetensors", which is no name of a safetensors file beside the index`},
		{`{"weight_map":{"a":"/etc/1.safetensors"}}`, "no name of a safetensors file"},
		{`{"weight_map":{"a":"C:1.safetensors"}}`, "no name of a safetensors file"},
		{`{"weight_map":{"a":"s\\1.safetensors"}}`, "no name of a safetensors file"},
		{`{"weight_map":{"a":"passwd"}}`, "no name of a safetensors file"},
		{`{"weight_map":{}}`, "weight_map names no tensor"},
		{`{"weight_map":[]}`, "cannot unmarshal"},
	} {
		dir := t.TempDir()
		for name, raw := range map[string][]byte{Index: []byte(c.index), "1.safetensors": one("a"), "2.safetensors": one("b"), "again.safetensors": one("a")} {
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := Open(dir)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s gave %v, want %q", c.index, err, c.want)
		case err == nil:
			if len(m.Files) != 2 || m.Tensor("b") == nil || m.Tensor("c") != nil {
				t.Errorf("%d files, %v", len(m.Files), m.Tensors)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[],"data_offsets":[12,13]},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`, 13))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tensors, err := parse(disk.InMemory(raw))
		if err != nil {
			return
		}
		total := 0
		for i := range tensors {
			total += tensors[i].Bytes()
			if err := tensors[i].Source.Read(make([]byte, tensors[i].Bytes()), tensors[i].Offset); err != nil {
				t.Errorf("tensor %q cannot be read: %v", tensors[i].Name, err)
			}
		}
		if total > len(raw) {
			t.Errorf("%d bytes of tensors in %d", total, len(raw))
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"model-00001-of-00002.safetensors"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := ParseIndex(text)
		if err != nil {
			return
		}
		for _, name := range files {
			if filepath.Base(name) != name || !filepath.IsLocal(name) {
				t.Errorf("%q leads out of the directory", name)
			}
		}
	})
}
