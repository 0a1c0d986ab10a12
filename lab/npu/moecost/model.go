package moecost

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// Model has the parts of a mixture that take time: attention and experts of layers that are alike.
type Model struct {
	experts.Shape
	Heads   int `json:"heads"` // of queries
	KVHeads int `json:"kv_heads"`
	HeadDim int `json:"head_dim"`
	Bits    int `json:"bits"` // of a weight on the device
}

// Check reports what no model is.
func (x *Model) Check() error {
	const most = 1 << 12
	if err := x.Shape.Check(); err != nil {
		return err
	}
	if x.Heads < 1 || x.Heads > most || x.KVHeads < 1 || x.KVHeads > x.Heads || x.HeadDim < 1 || x.HeadDim > most {
		return fmt.Errorf("%d heads, %d of keys, of %d numbers are outside 1 to %d", x.Heads, x.KVHeads, x.HeadDim, most)
	}
	if x.Bits != 1 && x.Bits != 2 && x.Bits != 4 && x.Bits != 16 {
		return fmt.Errorf("weights of %d bits: want 1, 2, 4 or 16", x.Bits)
	}
	return nil
}

// ExpertBytes returns what an expert takes on the device.
func (x *Model) ExpertBytes() int64 { return 3 * int64(x.Hidden) * int64(x.Width) * int64(x.Bits) / 8 }

// matrix is rows × columns of weights.
type matrix struct{ m, k int }

func (x *Model) expert() []matrix {
	return []matrix{{x.Width, x.Hidden}, {x.Width, x.Hidden}, {x.Hidden, x.Width}}
}

func (x *Model) projections() []matrix {
	q, kv := x.Heads*x.HeadDim, x.KVHeads*x.HeadDim
	return []matrix{{q, x.Hidden}, {kv, x.Hidden}, {kv, x.Hidden}, {x.Hidden, q}}
}

// operations returns the multiplications and additions of a row.
func operations(list []matrix) (n float64) {
	for _, w := range list {
		n += 2 * float64(w.m) * float64(w.k)
	}
	return n
}

// Row returns the seconds of a row in launches of group experts with room for capacity rows.
func (m *Machine) Row(x *Model, group, capacity int) (float64, error) {
	one, err := m.product(x.expert(), capacity, x.Bits)
	return (m.launch() + float64(group)*one) / float64(group*capacity), err
}

// product returns the seconds that the NPU multiplies rows with each matrix of the list.
func (m *Machine) product(list []matrix, rows, bits int) (seconds float64, err error) {
	if m.units == nil {
		d, macs := &m.Device.Costs, operations(list)/2
		return macs*float64(bits)/8/(d.Read*1e9) + float64(rows)*macs/(d.Device*1e9), nil
	}
	for _, w := range list {
		c, err := m.units.Product(soc.Matrix{M: w.m, K: w.k, Bits: bits, Group: 64, Count: 1}, rows)
		if err != nil {
			return 0, err
		}
		seconds += c.Seconds
	}
	return seconds, nil
}

// scores returns the seconds that the NPU needs for the scores and values of rows that see so
// many keys.
func (m *Machine) scores(x *Model, rows, keys int) float64 {
	if m.units == nil {
		return x.scoring(rows, keys) / 2 / (m.Device.Costs.Device * 1e9)
	}
	c := m.units.Attention(&soc.Model{Layers: 1, Heads: x.Heads, KVHeads: x.KVHeads, HeadDim: x.HeadDim}, []soc.Work{{Rows: rows, Context: keys}})
	return c.Seconds
}

// scoring returns the operations of attention's scores and values.
func (x *Model) scoring(rows, keys int) float64 {
	return 4 * float64(rows) * float64(keys) * float64(x.Heads) * float64(x.HeadDim)
}
