package gguf

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// part is a tensor of a file made by hand: so many bytes of data, whatever its
// type and shape say.
type part struct {
	number     Type
	cols, rows uint64
	bytes      int
}

// assemble makes a file of parts named a, b, c ... one after the other, with the
// given general.file_type if it is not negative.
func assemble(fileType int, parts ...part) []byte {
	pairs := min(1, uint64(fileType+1))
	head := file(3, uint64(len(parts)), pairs, func(e *encoder) {
		if fileType >= 0 {
			if err := e.pair("general.file_type", uint32(fileType)); err != nil {
				panic(err)
			}
		}
		offset := 0
		for i, p := range parts {
			entry(e, string(rune('a'+i)), p.number, uint64(offset), p.cols, p.rows)
			offset += p.bytes + padding(p.bytes, defaultAlignment)
		}
	})
	for _, p := range parts {
		data := make([]byte, p.bytes+padding(p.bytes, defaultAlignment))
		for i := range p.bytes {
			data[i] = byte(i*37) & 0x3b // no exponent of all ones
		}
		head = append(head, data...)
	}
	return head
}

// short is data less its last hundred bytes.
func short(data []byte) []byte { return data[:len(data)-100] }

// doubled is a file of two tensors at the same offset.
func doubled() []byte {
	return append(file(3, 2, 0, func(e *encoder) {
		entry(e, "a", 42, 0, 256, 16)
		entry(e, "b", 42, 0, 256, 16)
	}), make([]byte, 1152)...)
}

func TestNumbersOfSeveralMeaningsAreToldBySizes(t *testing.T) {
	norm := part{F32, 8, 1, 32}
	for _, c := range []struct {
		name  string
		parts []part
		types string
	}{
		{"40 in groups of 32", []part{{40, 256, 4, 192}, norm}, "Q1_0_G32 F32"},
		{"40 as NVFP4", []part{{40, 256, 4, 576}, norm}, "NVFP4 F32"},
		{"41", []part{{41, 256, 8, 288}, norm}, "Q1_0 F32"},
		{"41 in groups of 32", []part{{41, 256, 8, 384}, norm}, "Q1_0_G32 F32"},
		{"41 in rows that 128 does not divide", []part{{41, 96, 1, 18}, norm}, "Q1_0_G32 F32"},
		{"40 in groups of 512", []part{{40, 1024, 2, 520}, norm, {40, 512, 1, 130}}, "Q2_0C F32 Q2_0C"},
		{"41 in groups of 512", []part{{41, 1024, 2, 520}, norm, {41, 512, 1, 130}}, "Q2_0C F32 Q2_0C"},
		{"42", []part{{42, 256, 16, 1152}, norm}, "Q2_0 F32"},
		{"42 in groups of 128", []part{{42, 256, 16, 1088}, norm}, "PQ2_0 F32"},
		{"42 in rows that 128 does not divide", []part{{42, 192, 1, 54}, norm}, "Q2_0 F32"},
		{"42 as STQ1_0, which is told and not read", []part{{42, 256, 16, 672}, norm}, "STQ1_0_42 F32"},
		{"43", []part{{43, 256, 16, 672}, norm}, "STQ1_0 F32"},
		{"142 and 143", []part{{142, 256, 1, 68}, {143, 256, 1, 56}}, "PQ2_0 PTQ1_0"},
		{"a small one, then a large one", []part{{42, 128, 1, 34}, norm, {42, 256, 16, 1088}, norm}, "PQ2_0 F32 PQ2_0 F32"},
		{"a large one, then a small one", []part{norm, {42, 256, 16, 1152}, {42, 128, 1, 36}, norm}, "F32 Q2_0 Q2_0 F32"},
		{"one alone", []part{{42, 256, 16, 1088}}, "PQ2_0"},
		{"several at the end", []part{{42, 256, 16, 1088}, {42, 256, 16, 1088}}, "PQ2_0 PQ2_0"},
	} {
		f, err := Parse(assemble(-1, c.parts...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var types []string
		for i := range f.Tensors {
			types = append(types, f.Tensors[i].Type.String())
		}
		if got := strings.Join(types, " "); got != c.types {
			t.Errorf("%s: the tensors are of types %s, want %s", c.name, got, c.types)
		}
		touch(t, f)
	}
}

func TestWhatIsLastInAFileMayHaveZerosBehindItOrLackPadding(t *testing.T) {
	whole := assemble(-1, part{42, 256, 16, 1088}, part{42, 256, 15, 1020})
	for name, data := range map[string][]byte{
		"zeros behind it": append(slices.Clone(whole), make([]byte, 100)...),
		"no padding":      whole[:len(whole)-4],
	} {
		f, err := Parse(data)
		if err != nil || f.Tensor("b").Type != PQ2_0 || len(f.Tensor("b").Data) != 1020 {
			t.Errorf("%s: Parse() = %v, want two tensors of PQ2_0", name, err)
		}
	}
	for n := range whole[:len(whole)-4] {
		if _, err := Parse(whole[:n:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("Parse of the first %d of %d bytes = %v, want ErrFormat", n, len(whole), err)
		}
	}
}

func TestTheFileTypeDecidesWhereSizesDoNot(t *testing.T) {
	tie := map[Type]part{41: {41, 256, 1, 48}, 42: {42, 256, 1, 72}}
	for _, c := range []struct {
		fileType int
		number   Type
		want     Type
	}{{41, 41, Q1_0}, {141, 42, PQ2_0}} {
		f, err := Parse(assemble(c.fileType, tie[c.number]))
		if err != nil || f.Tensors[0].Type != c.want {
			t.Errorf("a tensor of number %d in a file of type %d: %v, want %v", uint32(c.number), c.fileType, err, c.want)
		}
	}
}

func TestNumbersThatNothingTellsApartAreRefusedWithTheTensorsName(t *testing.T) {
	large, norm := part{42, 256, 16, 1152}, part{F32, 8, 1, 32}
	for _, c := range []struct {
		name string
		data []byte
		want error
		says []string
	}{
		{"a few weights", assemble(-1, part{42, 256, 1, 68}), ErrUnsupported, []string{`tensor "a"`, "type 42", "Q2_0 and PQ2_0", "tell"}},
		{"a file type that says as little", assemble(41, norm, part{42, 256, 1, 68}), ErrUnsupported, []string{`tensor "b"`, "tell"}},
		{"one of 41", assemble(40, part{41, 128, 1, 18}), ErrUnsupported, []string{"type 41", "Q1_0 and Q1_0_G32"}},
		{"groups of 512 and of 128", assemble(-1, part{41, 1024, 2, 520}, part{41, 1024, 2, 288}, norm), ErrUnsupported, []string{`tensor "b"`, "288 bytes", "Q1_0_G32 and Q2_0C"}},
		{"rows that 512 does not divide", assemble(-1, part{41, 768, 2, 390}, norm), ErrUnsupported, []string{`tensor "a"`, "416 bytes"}},
		{"groups of 512 cut off", short(assemble(-1, part{41, 1024, 2, 520}, norm, part{41, 1024, 2, 520})), ErrFormat, []string{`tensor "c"`, "truncated"}},
		{"a number of its own", assemble(-1, part{Q2_0C, 512, 1, 130}), ErrUnsupported, []string{"unknown storage type 250"}},
		{"two layouts", assemble(-1, large, part{42, 256, 16, 1088}, norm), ErrUnsupported, []string{`tensor "b"`, "1088 bytes"}},
		{"a third layout", assemble(-1, norm, part{42, 256, 64, 64 * 36}, norm), ErrUnsupported, []string{`tensor "b"`, "none of them"}},
		{"a gap", assemble(41, part{41, 256, 8, 320}, norm), ErrUnsupported, []string{`tensor "a"`, "320 bytes"}},
		{"one that is cut off", assemble(-1, norm, large)[:400], ErrFormat, []string{`tensor "b"`, "truncated"}},
		{"overlapping ones", assemble(-1, part{42, 256, 16, 544}, part{F32, 8, 64, 2048}), ErrUnsupported, []string{`tensor "a"`, "544 bytes"}},
		{"two in one place", doubled(), ErrUnsupported, []string{`tensor "a"`, "0 bytes"}},
		{"partial blocks", assemble(-1, part{42, 100, 1, 64}), ErrFormat, []string{"whole blocks of 64"}},
		{"partial blocks of 142", assemble(-1, part{142, 192, 1, 64}), ErrFormat, []string{"whole blocks of 128"}},
		{"a shape that overflows", assemble(-1, part{41, 1 << 62, 128, 64}), ErrFormat, []string{"overflows"}},
		{"a number of no file", assemble(-1, part{Q1_0_G32, 32, 8, 48}), ErrUnsupported, []string{"unknown storage type 255"}},
	} {
		f, err := Parse(c.data)
		if f != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: Parse() = %v, want %v", c.name, err, c.want)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: the error %q does not say %q", c.name, err, says)
			}
		}
	}
}

func TestBlocksUnderAFormerNumberAreWrittenUnderTheirOwn(t *testing.T) {
	f, err := Parse(assemble(-1, part{42, 256, 16, 1088}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if want := assemble(-1, part{142, 256, 16, 1088}); !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the file is not written as one of number 142")
	}
}

func TestTheFileTypeHasTheNameOfWhatMostWeightsAre(t *testing.T) {
	norm := part{F32, 8, 1, 32}
	for _, c := range []struct {
		number int
		parts  []part
		want   string
	}{
		{-1, nil, ""}, {0, nil, "F32"}, {15, nil, "Q4_K_M"}, {4711, nil, ""},
		{40, []part{{41, 256, 8, 288}, norm}, "Q1_0"},
		{40, []part{{40, 256, 4, 192}, norm}, "Q1_0_G32"},
		{40, []part{{41, 1024, 2, 520}, norm}, "Q2_0C"},
		{39, []part{{40, 1024, 2, 520}, norm}, "Q2_0C"},
		{40, []part{{I2_S, 256, 4, 288}, norm}, "I2_S"},
		{40, nil, "Q1_0"},
		{41, []part{{41, 256, 8, 288}, norm}, "Q1_0"},
		{41, []part{{42, 256, 16, 1152}, norm}, "Q2_0"},
		{41, []part{{42, 256, 16, 1088}, norm}, "PQ2_0"},
		{141, []part{{142, 256, 1, 68}}, "PQ2_0"},
		{143, []part{{143, 256, 1, 56}}, "PTQ1_0"},
	} {
		f, err := Parse(assemble(c.number, c.parts...))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.FileType(); got != c.want {
			t.Errorf("file type %d of %v is called %q, want %q", c.number, c.parts, got, c.want)
		}
	}
}
