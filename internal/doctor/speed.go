package doctor

import (
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/internal/hub"
	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// packings has the packing of each storage type of the catalogue.
var packings = map[string]matrix.Packing{
	"I2_S": matrix.I2, "Q1_0": matrix.Q1G128, "PQ2_0": matrix.Q2G128, "PTQ1_0": matrix.Q2G128, "TQ1_0": matrix.I2, "Q4_0": matrix.Q4, "Q4_K": matrix.Q4M, "Q6_K": matrix.Q6, "Q8_0": matrix.Q8, "F16": matrix.F16,
}

// Speed holds the measured speeds.
type Speed struct {
	ReadOne float64 `json:"read_gbs"`     // 10^9 bytes a second from memory, by one thread
	ReadAll float64 `json:"read_gbs_all"` // and by all
	Rates   []Rate  `json:"rates"`
}

// Rate is the speed at which all threads multiply with a packing.
type Rate struct {
	Packing string  `json:"packing"`
	Bits    float64 `json:"bits"`         // of a weight
	One     float64 `json:"gmacs_one"`    // 10^9 weights times tokens a second, of one token
	Many    float64 `json:"gmacs_prompt"` // and of many
}

// Measure measures for about a second, with at most a quarter of so many free bytes.
func Measure(free int64) (*Speed, error) {
	return measure(free/4, 400*time.Millisecond, 25*time.Millisecond)
}

// measure reads at most so many bytes, and gives memory and each product their times.
func measure(bytes int64, reading, product time.Duration) (*Speed, error) {
	s := &Speed{}
	s.ReadOne, s.ReadAll = kernelbench.Memory(reading, bytes)
	var all []matrix.Packing
	for _, p := range matrix.Packings() {
		for _, used := range packings {
			if p == used {
				all = append(all, p)
				break
			}
		}
	}
	rates, err := kernelbench.Rates(all, product)
	for _, r := range rates {
		s.Rates = append(s.Rates, Rate{r.Packing.String(), r.Bits, r.One, r.Many})
	}
	return s, err
}

// Expected is the speed of a model of the catalogue, of one stream with a short context.
type Expected struct {
	Model  string  `json:"model"`
	Fits   bool    `json:"fits"`   // into the memory that is free
	Decode float64 `json:"decode"` // tokens a second
	Prompt float64 `json:"prompt"` // tokens of prompts a second
}

// Expect computes what models reach. A token reads every weight that it is multiplied with and
// computes with it; half of what takes less time hides behind the other. A fifth of a prompt's
// time is not products. Attention, and all else that grows with the context, is left out.
// docs/serving.md has the errors.
func (s *Speed) Expect(models []hub.Entry, free int64) (list []Expected, err error) {
	for _, e := range models {
		if e.Format != "" { // a reward model answers nothing
			continue
		}
		layers, err := s.rate(e.Storage)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		out, err := s.rate(e.OutputIn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		x := Expected{Model: e.Name, Fits: e.Memory <= free}
		x.Decode = 1 / (s.token(layers, e.Layers) + s.token(out, e.Output))
		x.Prompt = inProducts * layers.Many * 1e9 / float64(e.Layers)
		list = append(list, x)
	}
	return list, nil
}

// What of the shorter of reading and computing hides behind the longer, and what of a prompt's
// time is products, as five models of machine A of docs/performance.md have it.
const (
	hidden     = 0.5
	inProducts = 0.8
)

// token returns the seconds that weights take for one token.
func (s *Speed) token(r *Rate, weights int64) float64 {
	n := float64(weights) / 1e9
	read, compute := n*r.Bits/8/s.ReadAll, n/r.One
	return max(read, compute) + (1-hidden)*min(read, compute)
}

func (s *Speed) rate(storage string) (*Rate, error) {
	for i := range s.Rates {
		if p, ok := packings[storage]; ok && s.Rates[i].Packing == p.String() {
			return &s.Rates[i], nil
		}
	}
	return nil, fmt.Errorf("doctor: no rate of storage type %s", storage)
}
