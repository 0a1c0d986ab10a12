package mutate

import (
	"bytes"
	"slices"
)

// tensor is an entry of a file of weights.
type tensor struct {
	name string
	kind int // index among the storage types
	dims []int
	data []byte
}

// format says how large tensors are.
type format struct {
	kinds int
	size  func(kind int, dims []int) (int, bool)
}

// maxData bounds what a tensor is enlarged to.
const maxData = 1 << 18

// change changes one tensor, and its data with it: its entry is as good as the others'.
func (f *format) change(c *Choices, ts []tensor) []tensor {
	if len(ts) == 0 {
		return ts
	}
	ts = slices.Clone(ts)
	i := c.Below(len(ts))
	t := ts[i]
	t.dims = slices.Clone(t.dims)
	switch c.Below(8) {
	case 0: // it is missing
		return slices.Delete(ts, i, i+1)
	case 1: // it is another's
		t.name = ts[c.Below(len(ts))].name
		if at := slices.IndexFunc(ts, func(o tensor) bool { return o.name == t.name }); at != i {
			ts[at].name = ts[i].name
		}
		ts[i].name = t.name
		return ts
	case 2: // it is there twice, or of another layer
		t.name = pick(c, "x", "blk.9.", "model.layers.1.", "") + t.name
		return append(ts, t)
	case 3:
		t.data = bytes.Repeat([]byte{pick[byte](c, 0, 0xff, 0x7f, 0x80, 0x7c, byte(c.Below(256)))}, len(t.data))
		ts[i] = t
		return ts
	case 4:
		t.kind = c.Below(f.kinds)
	case 5:
		t.dims = pick(c, append(t.dims, 1+c.Below(3)), t.dims[:max(0, len(t.dims)-1)], append([]int{1}, t.dims...), []int{})
	case 6:
		slices.Reverse(t.dims)
	case 7:
		if len(t.dims) > 0 {
			d := &t.dims[c.Below(len(t.dims))]
			*d = pick(c, *d+1, *d-1, *d*2, *d/2, 1, *d+32, *d*3, 256, c.Below(40))
		}
	}
	n, ok := f.size(t.kind, t.dims)
	if !ok || n > maxData {
		return ts
	}
	if whole := t.data; n > len(whole) {
		t.data = slices.Grow(slices.Clone(whole), n-len(whole))
		for len(t.data) < n {
			t.data = append(t.data, whole[:min(len(whole), n-len(t.data))]...)
			if len(whole) == 0 {
				t.data = append(t.data, make([]byte, n-len(t.data))...)
			}
		}
	}
	t.data = t.data[:n]
	ts[i] = t
	return ts
}

// overwrite changes some bytes of a file among its first n, where numbers of its header stand.
func (c *Choices) overwrite(file []byte, n int) {
	if n = min(n, len(file)); n == 0 {
		return
	}
	c.writeAt(file, c.Below(n))
}

// writeAt writes a number of 1 to 8 bytes.
func (c *Choices) writeAt(file []byte, at int) {
	v, width := uint64(c.number(int64(c.Below(300)))), pick(c, 1, 1, 2, 4, 8)
	for i := at; i < min(len(file), at+width); i++ {
		file[i], v = byte(v), v>>8
	}
}
