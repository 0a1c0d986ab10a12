package bench

import (
	"time"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Memory measures the rate at which one thread and all threads of a pool read memory, in 10^9 bytes a
// second. It takes about the budget, and the time of writing most bytes at most.
func Memory(budget time.Duration, most int64) (one, all float64) {
	data := cpu.Aligned[uint8](max(16*readPart, int(min(most, int64(Uncached)))))
	for i := 0; i < len(data); i += 64 {
		data[i] = 1 // as Measure does
	}
	each := budget / time.Duration(2*len(readers()))
	one = readRate(data, 1, each)
	return one, max(one, readRate(data, cpu.Cores(), each))
}

// Rate gives the speed at which all threads multiply with a packing, in 10^9 weights times tokens a second,
// where the matrix comes from the nearest cache that holds it.
type Rate struct {
	Packing matrix.Packing
	Bits    float64 // of a weight
	One     float64 // one token at once
	Many    float64 // whole tiles of tokens
}

// Rates measures products of packings, each for about twice the budget.
func Rates(packings []matrix.Packing, budget time.Duration) ([]Rate, error) {
	const side, tokens = 2048, 64 // of the layers of small models
	workers := pool.New(cpu.Cores())
	defer workers.Close()
	var list []Rate
	for _, p := range packings {
		stack, err := Stack(side, side, p, 1)
		if err != nil {
			return nil, err
		}
		r := Rate{Packing: p, Bits: 8 * float64(kernels.DataSize(side, side, p)) / (side * side)}
		layer, err := kernels.NewCPU(workers).Load(stack[0])
		if err != nil {
			return nil, err
		}
		for _, n := range []int{1, tokens} {
			x, y := make([]float32, n*side), make([]float32, n*side)
			for i := range x {
				x[i] = float32(i%13) - 6
			}
			var acts kernels.Acts
			best := BestOfEach(workers.Threads(), budget, 1, func(int) {
				acts.Set(x, n, side)
				layer.Mul(y, &acts)
			})
			rate := float64(n) * side * side / best.Seconds() / 1e9
			if n == 1 {
				r.One = rate
			} else {
				r.Many = rate
			}
		}
		list = append(list, r)
	}
	return list, nil
}
