package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Choice says which kernels the products of a packing go to.
type Choice struct {
	Packing string   `json:"packing"`
	Kernels []string `json:"kernels"` // "isa:method from 9 tokens"
	Why     string   `json:"why"`
}

// Choices returns what was chosen for each packing that has several kernels, in the order of
// packings.
func Choices() []Choice {
	list := []Choice{}
	for _, p := range matrix.Packings() {
		if rules, why := Rules(p); len(rules) > 0 {
			list = append(list, Choice{p.String(), rules.Describe(), why})
		}
	}
	return list
}

// Rules returns the rules of a packing, whose methods are "isa:method"; none where there is nothing
// to choose.
func Rules(p matrix.Packing) (rules choice.Rules, why string) {
	switch {
	case p.Ternary():
		return ternary.Choice(p)
	case p.Kind() == meter.Grouped && len(grouped.Methods(p)) > 1:
		of, why := grouped.Choice(p)
		for _, r := range of {
			rules = append(rules, choice.Rule{From: r.From, Method: cpu.Active().String() + ":" + r.Method})
		}
		return rules, why
	}
	return nil, ""
}

// PrintChoices prints the kernels that the engine uses, one line for each packing that has
// several, and why.
func PrintChoices(w io.Writer) {
	for _, c := range Choices() {
		fmt.Fprintf(w, "%s: %s (%s)\n", c.Packing, strings.Join(c.Kernels, ", "), c.Why)
	}
}
