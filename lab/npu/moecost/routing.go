package moecost

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// Assumed returns a calibration of routers that nobody has run. The popularity of experts falls evenly, from ratio times the
// mean, and parts of 64 tokens have preferences of their own. It stands for the routing of models whose files are not at hand.
func Assumed(shape experts.Shape, ratio float64, prompts, tokens int, chunks []int) (*calibration.Calibration, error) {
	c, err := calibration.NewCounter(shape, chunks)
	if err != nil {
		return nil, err
	}
	const part = 64 // tokens
	r := rand.New(rand.NewPCG(1, uint64(shape.Experts)))
	keys := make([]float64, shape.Experts)
	order := make([]int32, shape.Experts)
	for range prompts {
		for layer := range shape.Layers {
			liking := make([]float64, shape.Experts)
			for at := range tokens {
				for e := range keys {
					if at%part == 0 {
						place := float64((e+layer)%shape.Experts) / float64(max(1, shape.Experts-1)) // layers differ in which are popular
						liking[e] = math.Log(max(0.05, 1+(ratio-1)*(1-2*place))) + 0.5*r.NormFloat64()
					}
					keys[e] = liking[e] - math.Log(r.ExpFloat64()) // Gumbel: the largest k are k draws without replacement
					order[e] = int32(e)
				}
				slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(keys[b], keys[a]) })
				c.Add(layer, order[:shape.Chosen])
			}
		}
		if err := c.End(); err != nil {
			return nil, err
		}
	}
	return calibration.New(shape, []calibration.Set{c.Set("assumed routing")})
}
