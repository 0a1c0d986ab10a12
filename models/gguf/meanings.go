package gguf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// meanings are the types that a number has stood for, where there is more than one; the first is ggml's of
// today.
//
// PrismML's llama.cpp began with 40 for signs in groups of 32, 41 for signs in groups of 128 and 42 for
// pairs in groups of 128. ggml gave 40 to NVFP4, which made 41 groups of 32 for a while, and 42 to groups
// of 64. AngelSlim's STQ1_0 was 42 before it was 43. Tencent's Q2_0C is 41 in Hy-MT1.5 and 40 in Hy-MT2.
// Files of each time are in use and name the same number and the same general.file_type. Sources are pull
// requests 19357, 20048, 21273 and 24448 of ggml-org/llama.cpp, 302 of onnxruntime/mobius, and the README
// of PrismML-Eng/llama.cpp.
var meanings = [...][]Type{
	{NVFP4, Q1_0_G32, Q2_0C},
	{Q1_0, Q1_0_G32, Q2_0C},
	{Q2_0, PQ2_0, STQ1_0_42},
}

// settle replaces numbers of several meanings by the type that fits. Nothing but
// padding lies between tensors, so each tells by its size; and a file comes from
// one program, so a number means the same in all of it. Where sizes fit several
// types, as with tensors of a few hundred weights, general.file_type decides. A
// file that neither decides is refused: a wrong guess would read noise.
func (f *File) settle(c *cursor, extents []extent, align uint64) {
	for _, types := range meanings {
		var of []int // tensors of that number
		for i := range f.Tensors {
			if f.Tensors[i].Type == types[0] {
				of = append(of, i)
			}
		}
		if len(of) == 0 || c.err != nil {
			continue
		}
		typ := f.meaning(c, types, of, extents, align)
		if f.types == nil {
			f.types = map[Type]Type{}
		}
		f.types[types[0]] = typ
		for _, i := range of {
			f.Tensors[i].Type = typ
		}
	}
}

// meaning returns the one of types that all tensors of their number have. What is last
// in the file may be cut off or have something after it, and is asked last. What
// is cut off or has no whole blocks is left to place, which names the fault.
func (f *File) meaning(c *cursor, types []Type, of []int, extents []extent, align uint64) Type {
	left := types
	for _, i := range of {
		t, room := &f.Tensors[i], extents[i].hi-extents[i].lo
		sizes := map[Type]uint64{} // with padding
		for _, typ := range types {
			if n, err := typ.Size(t.Dims); err == nil {
				sizes[typ] = (uint64(n) + align - 1) &^ (align - 1)
			}
		}
		fit := slices.DeleteFunc(slices.Clone(left), func(typ Type) bool { n, ok := sizes[typ]; return !ok || n != room })
		switch {
		case len(fit) > 0:
			left = fit
		case len(sizes) == 0, extents[i].last && room < slices.Min(slices.Collect(maps.Values(sizes))):
			return left[0]
		case !extents[i].last:
			c.what = fmt.Sprintf("tensor %q", t.Name)
			c.fail("%w: storage type %d has stood for %s, and none of them takes the %d bytes here and those of the other tensors",
				ErrUnsupported, uint32(types[0]), names(types), room)
			return types[0]
		}
	}
	named := f.fileType().types
	if both := slices.DeleteFunc(slices.Clone(left), func(typ Type) bool { return !slices.Contains(named, typ) }); len(both) == 1 {
		left = both
	}
	if len(left) > 1 {
		c.what = fmt.Sprintf("tensor %q", f.Tensors[of[0]].Name)
		c.fail("%w: storage type %d has stood for %s, and neither sizes nor general.file_type tell which it is here",
			ErrUnsupported, uint32(types[0]), names(types))
	}
	return left[0]
}

// names joins the names of types for a message.
func names(types []Type) string {
	var s []string
	for _, t := range types {
		s = append(s, t.String())
	}
	return strings.Join(s, " and ")
}
