package gguf

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// piece is one file of a model, as gguf-split writes it.
type piece struct {
	meta    Metadata
	tensors []Tensor
}

// three are a model in as many parts; the tensors are a, b and c, d and e.
func three() []piece {
	tensor := func(name string, rows int) Tensor {
		return Tensor{Name: name, Type: Q8_0, Dims: []int{32, rows}, Data: bytes.Repeat([]byte(name), 34*rows)}
	}
	keys := func(no uint16) Metadata {
		return Metadata{"split.no": no, "split.count": uint16(3), "split.tensors.count": int32(5)}
	}
	first := keys(0)
	maps.Copy(first, every())
	return []piece{
		{first, []Tensor{tensor("a", 1)}},
		{keys(1), []Tensor{tensor("b", 2), tensor("c", 3)}},
		{keys(2), []Tensor{tensor("d", 1), tensor("e", 2)}},
	}
}

// lay writes parts beside each other, an hour ago, and gives the path of the first.
func lay(t *testing.T, files []piece) string {
	t.Helper()
	dir := t.TempDir()
	for i, p := range files {
		var b bytes.Buffer
		if err := Write(&b, p.meta, p.tensors); err != nil {
			t.Fatal(err)
		}
		rewrite(t, partPath(dir, i+1), b.Bytes(), time.Now().Add(-time.Hour))
	}
	return partPath(dir, 1)
}

func partPath(dir string, no int) string {
	return filepath.Join(dir, "m-0000"+string(rune('0'+no))+"-of-00003.gguf")
}

// retype changes the type of tensor m in the directory of a written file.
func retype(data []byte, m Tensor, typ Type) []byte {
	e := &encoder{}
	e.str(m.Name)
	e.u32(uint32(len(m.Dims)))
	for _, d := range m.Dims {
		e.u64(uint64(d))
	}
	before := bytes.Clone(e.buf)
	e.u32(uint32(typ))
	return bytes.Replace(data, append(before, byte(m.Type), 0, 0, 0), e.buf, 1)
}

func TestATensorSmallerOrLargerThanItsPlaceIsRefusedInWholeFilesAndInParts(t *testing.T) {
	for part, p := range three() {
		for _, m := range p.tensors {
			for _, typ := range []Type{Q4_0, F32} { // F16 would fit the padding of a row
				path := lay(t, three())
				var b bytes.Buffer
				if err := Write(&b, Metadata{}, p.tensors); err != nil {
					t.Fatal(err)
				}
				if _, err := Parse(b.Bytes()); err != nil {
					t.Fatalf("an unaltered file: %v", err)
				}
				if _, err := Parse(retype(b.Bytes(), m, typ)); !errors.Is(err, ErrFormat) {
					t.Errorf("a file with tensor %s as %v: %v, want ErrFormat", m.Name, typ, err)
				}
				file := strings.Replace(path, "00001", "0000"+string(rune('1'+part)), 1)
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				rewrite(t, file, retype(data, m, typ), time.Now())
				if _, err := Open(path); !errors.Is(err, ErrFormat) {
					t.Errorf("part %d with tensor %s as %v: %v, want ErrFormat", part+1, m.Name, typ, err)
				}
			}
		}
	}
}

func TestAModelInPartsReadsAsOne(t *testing.T) {
	f := open(t, lay(t, three()))
	var names []string
	for i := range f.Tensors {
		x := &f.Tensors[i]
		names = append(names, x.Name)
		if x.Data != nil || f.Tensor(x.Name) != x {
			t.Errorf("tensor %s is in memory, or not found by its name", x.Name)
		}
		row, err := x.Load(x.Rows()-1, x.Rows(), nil)
		if err != nil || !bytes.Equal(row.Data, bytes.Repeat([]byte(x.Name), 34)) {
			t.Errorf("the last row of %s is %q, %v", x.Name, row.Data, err)
		}
		if err := x.Dequantize(make([]float32, 32), 0); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c", "d", "e"}) || f.Parts() != 3 {
		t.Errorf("tensors %q of %d parts", names, f.Parts())
	}
	var b bytes.Buffer
	if err := Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	whole, err := Parse(b.Bytes())
	if err != nil || len(whole.Tensors) != 5 || len(whole.Metadata) != len(every()) {
		t.Errorf("written as one file it is %+v, %v", whole, err)
	}
}

func TestAChangeOfAnyPartIsNoticed(t *testing.T) {
	for no := 1; no <= 3; no++ {
		path := lay(t, three())
		f := open(t, path)
		if err := f.Unchanged(); err != nil {
			t.Fatal(err)
		}
		changed := partPath(filepath.Dir(path), no)
		if err := os.Truncate(changed, 100); err != nil {
			t.Fatal(err)
		}
		if err := f.Unchanged(); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), changed) {
			t.Errorf("part %d: Unchanged() = %v, want ErrChanged with its name", no, err)
		}
	}
}

func TestAllPartsAreClosed(t *testing.T) {
	f := open(t, lay(t, three()))
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b", "e"} {
		if _, err := f.Tensor(name).Load(0, 1, nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Load of %s after Close = %v", name, err)
		}
	}
}

func TestPartsThatDoNotBelongTogetherAreRefusedByName(t *testing.T) {
	const first, second, third = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"
	set := func(no int, key string, v any) func([]piece) []piece {
		return func(p []piece) []piece { p[no-1].meta[key] = v; return p }
	}
	for name, c := range map[string]struct {
		change func(p []piece) []piece
		kind   error
		says   []string
	}{
		"missing":              {func(p []piece) []piece { return p[:2] }, fs.ErrNotExist, []string{third, "part 3 of 3 is missing"}},
		"reordered":            {func(p []piece) []piece { p[1], p[2] = p[2], p[1]; return p }, ErrFormat, []string{second, "split.no", "another order"}},
		"duplicated":           {func(p []piece) []piece { p[2] = p[1]; return p }, ErrFormat, []string{third, "split.no"}},
		"the first is another": {func(p []piece) []piece { p[0] = p[1]; return p }, ErrFormat, []string{first, "by its name it is part 1 of 3, by its keys part 2 of 3"}},
		"another count":        {set(2, "split.count", uint16(4)), ErrFormat, []string{second, "4 parts"}},
		"no part at all":       {func(p []piece) []piece { delete(p[1].meta, "split.count"); return p }, ErrFormat, []string{second, "split.count"}},
		"no number":            {func(p []piece) []piece { delete(p[1].meta, "split.no"); return p }, ErrFormat, []string{second, "split.no"}},
		"the first has none":   {func(p []piece) []piece { delete(p[0].meta, "split.no"); return p }, ErrFormat, []string{first, "split.no"}},
		"too many":             {set(1, "split.count", uint16(60000)), ErrUnsupported, []string{first, "60000 parts"}},
		"of another model":     {set(3, "general.architecture", "falcon"), ErrFormat, []string{third, "general.architecture", "falcon", "llama"}},
		"other tensors":        {set(3, "split.tensors.count", int32(6)), ErrFormat, []string{third, "split.tensors.count"}},
		"a tensor twice":       {func(p []piece) []piece { p[2].tensors[0].Name = "b"; return p }, ErrFormat, []string{third, `"b"`, second}},
		"a tensor is missing":  {func(p []piece) []piece { p[2].tensors = p[2].tensors[:1]; return p }, ErrFormat, []string{first, "5 tensors", "hold 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(lay(t, c.change(three())))
			if err == nil {
				f.Close()
			}
			if !errors.Is(err, c.kind) {
				t.Fatalf("Open = %v, want %v", err, c.kind)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

func TestAPartWithSeveralFaultsIsAlwaysRefusedForTheSameOne(t *testing.T) {
	parts := three()
	for _, key := range []string{"general.name", "general.author", "general.license"} {
		parts[0].meta[key], parts[2].meta[key] = "one", "another"
	}
	path := lay(t, parts)
	for range 30 {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), `"general.author"`) {
			t.Fatalf("Open = %v, want an error about general.author", err)
		}
	}
}

func TestOnlyTheFirstPartIsOpenedByItsOwnName(t *testing.T) {
	path := lay(t, three())
	if _, err := Open(partPath(filepath.Dir(path), 2)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "open the first, m-00001-of-00003.gguf") {
		t.Errorf("Open of the second part = %v", err)
	}
	renamed := filepath.Join(filepath.Dir(path), "m.gguf")
	if err := os.Rename(path, renamed); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(renamed); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "-00001-of-00003.gguf") {
		t.Errorf("Open of a renamed part = %v", err)
	}
}

func TestAPartThatIsCutOffOrNoFileIsRefusedByName(t *testing.T) {
	for _, n := range []int64{0, 3, 50, 200} {
		path := lay(t, three())
		second := partPath(filepath.Dir(path), 2)
		if err := os.Truncate(second, n); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), second) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	path := lay(t, three())
	second := partPath(filepath.Dir(path), 2)
	if err := errors.Join(os.Remove(second), os.Mkdir(second, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), second) {
		t.Errorf("a folder in a part's place: %v", err)
	}
}

// twoBits are pieces whose second and third hold a tensor of number 42 each.
func twoBits(rows int) []piece {
	p := three()
	for i, typ := range []Type{F32, Q2_0, Q2_0} {
		n, _ := typ.Size([]int{256, rows}) // valid
		p[i].tensors = []Tensor{{Name: string(rune('a' + i)), Type: typ, Dims: []int{256, rows}, Data: make([]byte, n)}}
		p[i].meta["split.tensors.count"] = int32(3)
	}
	return p
}

func TestTheFileTypeOfTheFirstPartDecidesForAll(t *testing.T) {
	p := twoBits(1) // with padding a row takes 96 bytes as either type
	if _, err := Open(lay(t, p)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "m-00002") {
		t.Errorf("Open without a file type = %v", err)
	}
	p[0].meta["general.file_type"] = uint32(141)
	if f := open(t, lay(t, p)); f.Tensor("b").Type != PQ2_0 || f.Tensor("c").Type != PQ2_0 || f.FileType() != "PQ2_0" {
		t.Errorf("types %v and %v of a %s", f.Tensor("b").Type, f.Tensor("c").Type, f.FileType())
	}
}

func TestANumberMeansTheSameInAllParts(t *testing.T) {
	p := twoBits(16)
	path := lay(t, p)
	p[2].tensors[0].Type = PQ2_0
	p[2].tensors[0].Data = make([]byte, 1088)
	var b bytes.Buffer
	if err := Write(&b, p[2].meta, p[2].tensors); err != nil {
		t.Fatal(err)
	}
	of := func(number byte) []byte { return []byte{16, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0} } // rows, then the type
	third := bytes.Replace(b.Bytes(), of(142), of(42), 1)
	rewrite(t, partPath(filepath.Dir(path), 3), third, time.Now())
	if _, err := Open(path); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "42 stands for PQ2_0, in earlier parts for Q2_0") {
		t.Errorf("Open = %v", err)
	}
}

func TestAModelInMemoryIsNoPart(t *testing.T) {
	var b bytes.Buffer
	p := three()
	if err := Write(&b, p[0].meta, p[0].tensors); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(b.Bytes()); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "one of 3 parts") {
		t.Errorf("Parse = %v", err)
	}
}
