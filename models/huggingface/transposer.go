package huggingface

import (
	"sync"

	"github.com/lutra-lm/lutra/models/safetensors"
)

// transposer makes tensors with their dimensions in another order, and keeps those that it has made last: the
// experts of a layer are read one after the other.
type transposer struct {
	mu   sync.Mutex
	last [2]turned
	next int // of last
}

// turned is a tensor whose dimension i is the other's dimension order[i].
type turned struct {
	of    *safetensors.Tensor
	order [3]int
	data  []byte
}

// read sets dst to bytes of t, which has that shape, from an offset on, once it is turned.
func (u *transposer) read(dst []byte, t *safetensors.Tensor, shape, order [3]int, from int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.last {
		if l := &u.last[i]; l.of == t && l.order == order {
			copy(dst, l.data[from:])
			return nil
		}
	}
	data, err := turn(t, shape, order)
	if err != nil {
		return err
	}
	u.last[u.next] = turned{t, order, data}
	u.next = (u.next + 1) % len(u.last)
	copy(dst, data[from:])
	return nil
}

// turn reads t with its dimensions in another order.
func turn(t *safetensors.Tensor, shape, order [3]int) ([]byte, error) {
	raw := make([]byte, t.Bytes())
	if err := t.Source.Read(raw, t.Offset); err != nil {
		return nil, err
	}
	size := len(raw) / max(1, t.Len())
	strides := [3]int{size * shape[1] * shape[2], size * shape[2], size}
	out := make([]byte, 0, len(raw))
	for i := range shape[order[0]] {
		for j := range shape[order[1]] {
			at := i*strides[order[0]] + j*strides[order[1]]
			for range shape[order[2]] {
				out = append(out, raw[at:at+size]...)
				at += strides[order[2]]
			}
		}
	}
	return out, nil
}
