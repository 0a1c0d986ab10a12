package attention

import (
	"math"

	kernel "github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Mask is which keys the rows of a layer see, and what becomes of their scores.
type Mask struct {
	Scale  float32 // of scores
	Cap    float32 // scores are drawn into (-Cap, Cap); 0: they are not
	Window int     // keys that are seen, the row's own included; 0: all
	Both   bool    // a window lies on both sides: as many keys are seen after the row as before it
	// Slopes is by how much the scores of a head sink for each position between row and
	// key, on either side (Press et al. 2022, "Train Short, Test Long", §3); nil: they do
	// not. [Heads]
	Slopes []float32
	// Sinks is one more score for each head, which takes its share of the softmax and
	// adds nothing (Xiao et al. 2023, "Efficient Streaming Language Models with
	// Attention Sinks", §3.3); nil: there are none. [Heads]
	Sinks []float32
	Drift *Drift // of keys; nil: none
}

// finish sets dst to what query head has gathered.
func (m *Mask) finish(s *kernel.Softmax, dst, acc []float32, head int) {
	if m.Sinks != nil {
		s.Sum += float32(math.Exp(float64(m.Sinks[head]) - float64(s.Max)))
	}
	s.Finish(dst, acc)
}

// reaches tells whether a row sees a key of positions [lo, hi).
func (m *Mask) reaches(rows []RowPos, lo, hi int) bool {
	if m.Window == 0 {
		return true
	}
	for i := range rows {
		if hi > rows[i].Pos+1-m.Window && (!m.Both || lo < rows[i].Pos+m.Window) {
			return true
		}
	}
	return false
}

// unseen is the score of a key outside a row's window: finite, for a softmax
// takes no row of infinities.
const unseen = -1e30

// restart resets the softmax of queries that have seen no key of their window yet.
// Otherwise the next one would weigh the keys before the window with the smallest
// number rather than zero. Their sums of values are zero, as drop leaves nothing to add.
func restart(soft []kernel.Softmax) {
	for i := range soft {
		if soft[i].Max == unseen {
			soft[i] = kernel.NewSoftmax()
		}
	}
}

// apply finishes the scores of rows, with the group queries of a KV head each, for the
// keys from position lo on, of which query i sees the first n[i].
func (m *Mask) apply(scores []float32, ld, head, group int, rows []RowPos, n []int32, lo int) {
	if m.Cap == 0 && m.Window == 0 && m.Slopes == nil {
		return
	}
	for i := range len(rows) * group {
		x := scores[i*ld : i*ld+int(n[i])]
		if m.Cap > 0 {
			vector.SoftCap(x, m.Cap)
		}
		if m.Slopes != nil {
			slope, behind := m.Slopes[head*group+i%group], rows[i/group].Pos-lo
			for k := range x {
				x[k] -= slope * float32(max(behind-k, k-behind))
			}
		}
		if m.Window > 0 {
			for k := range x[:m.first(&rows[i/group], lo, len(x))] {
				x[k] = unseen
			}
			for k := m.end(&rows[i/group], lo, len(x)); k < len(x); k++ {
				x[k] = unseen
			}
		}
	}
}

// end returns how many of n keys, from position lo on, do not lie after a row's window.
func (m *Mask) end(row *RowPos, lo, n int) int {
	if !m.Both {
		return n
	}
	return min(n, max(0, row.Pos+m.Window-lo))
}

// first returns how many of n keys, from position lo on, lie before a row's window.
func (m *Mask) first(row *RowPos, lo, n int) int {
	return min(n, max(0, row.Pos+1-m.Window-lo))
}

// drop clears the weights of the keys outside a row's window, which are the smallest numbers rather than zero.
// Whether a row meets such keys at all depends on its neighbours. Their products are denormal, and take Intel's
// cores a hundred cycles each.
func (m *Mask) drop(weights []float32, ld, group int, rows []RowPos, n []int32, lo int) {
	if m.Window == 0 {
		return
	}
	for i := range len(rows) * group {
		x := weights[i*ld : i*ld+int(n[i])]
		clear(x[:m.first(&rows[i/group], lo, len(x))])
		clear(x[m.end(&rows[i/group], lo, len(x)):])
	}
}
