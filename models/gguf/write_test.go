package gguf

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestWriteIsDeterministicAndPutsTheArchitectureFirst(t *testing.T) {
	a, b := small(t), small(t)
	if !bytes.Equal(a, b) {
		t.Errorf("two files of the same contents differ")
	}
	if key := string(a[32 : 32+len("general.architecture")]); key != "general.architecture" {
		t.Errorf("the first key is %q, want general.architecture", key)
	}
}

func TestWriteKeepsTheAlignmentAskedFor(t *testing.T) {
	var b bytes.Buffer
	data := bytes.Repeat([]byte{9}, 4)
	err := Write(&b, Metadata{"general.alignment": uint32(256)}, []Tensor{
		{Name: "a", Type: F32, Dims: []int{1}, Data: data},
		{Name: "b", Type: F32, Dims: []int{1}, Data: data},
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() != 3*256 {
		t.Errorf("the file takes %d bytes, want header and two tensors of 256 each", b.Len())
	}
	f, err := Parse(b.Bytes())
	if err != nil || !bytes.Equal(f.Tensor("b").Data, data) {
		t.Errorf("reading it back = %v", err)
	}
}

func TestWriteRefusesWhatParseWouldNotRead(t *testing.T) {
	w := Tensor{Name: "w", Type: F32, Dims: []int{1}, Data: make([]byte, 4)}
	with := func(change func(*Tensor)) []Tensor {
		x := w
		change(&x)
		return []Tensor{x}
	}
	for name, c := range map[string]struct {
		meta    Metadata
		tensors []Tensor
	}{
		"a Go int":             {Metadata{"k": 1}, nil},
		"an empty key":         {Metadata{"": uint8(1)}, nil},
		"a mixed array":        {Metadata{"k": []any{uint8(1)}}, nil},
		"a deep array":         {Metadata{"k": []any{[]any{[]any{[]any{[]any{}}}}}}, nil},
		"an odd alignment":     {Metadata{"general.alignment": uint32(3)}, nil},
		"a repeated name":      {nil, []Tensor{w, w}},
		"no name":              {nil, with(func(x *Tensor) { x.Name = "" })},
		"too little data":      {nil, with(func(x *Tensor) { x.Data = x.Data[:3] })},
		"too much data":        {nil, with(func(x *Tensor) { x.Data = make([]byte, 5) })},
		"no dimensions":        {nil, with(func(x *Tensor) { x.Dims = nil })},
		"five dimensions":      {nil, with(func(x *Tensor) { x.Dims = []int{1, 1, 1, 1, 1} })},
		"a zero dimension":     {nil, with(func(x *Tensor) { x.Dims = []int{0} })},
		"a partial block":      {nil, with(func(x *Tensor) { x.Type = Q8_0 })},
		"an unknown type":      {nil, with(func(x *Tensor) { x.Type = 4 })},
		"earlier blocks":       {nil, with(func(x *Tensor) { x.Type, x.Dims, x.Data = Q1_0_G32, []int{32}, make([]byte, 6) })},
		"an overflowing shape": {nil, with(func(x *Tensor) { x.Dims = []int{1 << 30, 1 << 30, 1 << 30} })},
	} {
		if err := Write(io.Discard, c.meta, c.tensors); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("Write with %s = %v, want ErrFormat or ErrUnsupported", name, err)
		}
	}
}

// failing accepts n bytes.
type failing struct{ n int }

var errFull = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if f.n < len(b) {
		return f.n, errFull
	}
	f.n -= len(b)
	return len(b), nil
}

func TestWriteReportsAFailingDisk(t *testing.T) {
	big := Tensor{Name: "w", Type: F32, Dims: []int{1 << 20}, Data: make([]byte, 4<<20)}
	for _, room := range []int{0, 10, 2 << 20} {
		if err := Write(&failing{room}, Metadata{"k": true}, []Tensor{big}); !errors.Is(err, errFull) {
			t.Errorf("Write onto a disk with room for %d = %v, want %v", room, err, errFull)
		}
	}
}
