package bench

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Choice says which kernels the products of a packing go to.
type Choice struct {
	Packing string   `json:"packing"`
	Kernels []string `json:"kernels"` // "isa:method from N=tokens"
	Why     string   `json:"why"`
}

// Choices returns what was chosen for each packing that has several kernels, in the order of
// packings.
func Choices() (list []Choice) {
	chosen, why := ternary.Choices()
	for _, p := range matrix.Packings() {
		c := Choice{Packing: p.String(), Why: why}
		for _, k := range chosen {
			if k.Packing == p {
				c.Kernels = append(c.Kernels, fmt.Sprintf("%s from N=%d", k.Kernel, k.From))
			}
		}
		if p.Kind() == meter.Grouped && len(grouped.Methods(p)) > 1 {
			method, why := grouped.Choice(p)
			c.Kernels, c.Why = []string{fmt.Sprintf("%v:%s from N=2", cpu.Active(), method)}, why
		}
		if len(c.Kernels) > 0 {
			list = append(list, c)
		}
	}
	return slices.Clip(list)
}
