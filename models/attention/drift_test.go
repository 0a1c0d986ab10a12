package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/kv"
)

// Biases of slow pairs as Qwen2.5 has them: 4 bits of the whole key hold little else.
func TestKeysWithoutTheirDriftKeepWhatTokensAddToIt(t *testing.T) {
	workers := allWorkers(t, 1, 3)
	for _, halves := range []bool{true, false} {
		for kind, blockLen := range map[kv.Type]int{int4AndF16: 16, kv.Int4: 200, int8AndInt4: 48, kv.Int8: 32} { // spans are whole chunks, parts of chunks or neither
			t.Run(fmt.Sprintf("halves=%t/%v/block=%d", halves, kind, blockLen), func(t *testing.T) {
				cfg := config{4, kv.Shape{Layers: 1, Heads: 2, HeadDim: 64}}
				r := rand.New(rand.NewPCG(8, 1))
				d, lengths := cfg.HeadDim, []int{70, 300, 1100}
				bias := make([]float32, cfg.Heads*d)
				freq, turn := slowPairs(d)
				place := func(head, pair int) (x, y int) {
					if halves {
						return head*d + pair, head*d + d/2 + pair
					}
					return head*d + 2*pair, head*d + 2*pair + 1
				}
				for h := range cfg.Heads {
					for pair := d/2 - 4; pair < d/2; pair++ {
						x, y := place(h, pair)
						bias[x], bias[y] = 300, -200
					}
				}
				mask := Mask{Scale: 0.1, Drift: NewDrift(bias, d, halves, freq, NewTurns(d/2, 1100, turn))}
				c := newTestCase(t, r, cfg, kv.Options{Type: kind, BlockLen: blockLen}, mask, lengths, 3)
				cos, sin, settled := make([]float32, d/2), make([]float32, d/2), make([]float32, len(bias))
				store := func(settle bool) {
					for seq, keys := range c.keys {
						for pos := range seq.Len() {
							copy(settled, keys[pos*len(bias):])
							if settle {
								mask.Drift.Settle(settled, pos)
							}
							c.cache.Store(0, seq, pos, settled, c.values[seq][pos*len(bias):(pos+1)*len(bias)])
						}
					}
				}
				for seq, keys := range c.keys {
					for pos := range seq.Len() {
						turn(cos, sin, int32(pos))
						key := keys[pos*len(bias):]
						for h := range cfg.Heads {
							for i := range d / 2 {
								x, y := place(h, i)
								key[x] += bias[x]*cos[i] - bias[y]*sin[i]
								key[y] += bias[x]*sin[i] + bias[y]*cos[i]
							}
						}
					}
				}
				squares := func() (sum float64) {
					out := c.attend(workers["one alone"], 0, len(c.rows))
					for i := range c.rows {
						for j, v := range c.exact(i) {
							sum += (float64(out[i*cfg.heads*d+j]) - v) * (float64(out[i*cfg.heads*d+j]) - v)
						}
					}
					return sum
				}
				store(true)
				c.check(t, workers)
				without := squares()
				store(false)
				c.mask.Drift = nil
				if with := squares(); (kind == int4AndF16 || kind == kv.Int8) && with < 9*without {
					t.Errorf("the error's square is %v without the drift, %v with it", without, with)
				}
			})
		}
	}
}

// slowPairs are the frequencies of heads of d elements, and what sets cosines and sines of a position, as Qwen2.5 has them.
func slowPairs(d int) (freq []float64, turn func(cos, sin []float32, position int32)) {
	freq = make([]float64, d/2)
	for i := range freq {
		freq[i] = math.Pow(1e6, -2*float64(i)/float64(d))
	}
	return freq, func(cos, sin []float32, position int32) {
		for i, f := range freq {
			s, c := math.Sincos(float64(position) * f)
			cos[i], sin[i] = float32(c), float32(s)
		}
	}
}

// Of latent attention: one head of 512 and 64 elements.
func TestHeadsThatAreNoPowerOfTwoAreKeptIn4Bits(t *testing.T) {
	sweep.Full(t)
	workers := allWorkers(t, 2)
	for _, d := range []int{96, 576} {
		c := newTestCase(t, rand.New(rand.NewPCG(9, uint64(d))), config{8, kv.Shape{Layers: 1, Heads: 1, HeadDim: d}}, kv.Options{Type: kv.Int4, BlockLen: 16}, Mask{Scale: 0.04}, []int{5, 700}, 9)
		c.check(t, workers)
	}
}
