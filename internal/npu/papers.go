package npu

import (
	"strings"

	"github.com/lutra-lm/lutra/internal/npu/soc"
)

// Comparison is a measured figure of the papers beside the modelled one.
type Comparison struct {
	What     string  `json:"what"`
	Where    string  `json:"where"` // in which paper
	Measured float64 `json:"measured"`
	Modelled float64 `json:"modelled"`
	Ratio    float64 `json:"ratio"` // modelled by measured
	Note     string  `json:"note,omitempty"`
}

// compare sets the model beside what the papers' text says of this model, and of
// kernels. Both measured 8 Gen 3; figures that stand in drawings alone are not here.
func (o Options) compare(x soc.Model) ([]Comparison, error) {
	chip, err := soc.Named("8gen3")
	if err != nil {
		return nil, err
	}
	m := o.machine(chip)
	var list []Comparison
	add := func(what, where string, measured, modelled float64, note string) {
		list = append(list, Comparison{what, where, measured, modelled, modelled / measured, note})
	}
	if strings.HasPrefix(x.Name, "bitnet-2b") {
		pre, err := m.Prefill(&x, 1024)
		if err != nil {
			return nil, err
		}
		dec, err := m.Decode(&x, 1, 1024)
		if err != nil {
			return nil, err
		}
		add("BitNet-2B, decode, tokens/s", "T-MAN §6.3", 49.1, 1/dec.Seconds, "")
		add("BitNet-2B, decode, J/token", "T-MAN Table 3", 0.101, dec.Joules, "")
		add("BitNet-2B, prefill of 1024, tokens/s", "T-MAN Table 3", 5.01/0.0080, 1024/pre.Seconds, "measured: power by energy a token; T-MAN multiplies int8 tiles, we fp16")
		add("BitNet-2B, prefill of 1024, J/token", "T-MAN Table 3", 0.0080, pre.Joules/1024, "")
	}
	if x.Name == "qwen2.5-1.5b" {
		list = append(list, o.scaling(m, x)...)
	}
	w := soc.Matrix{Name: "4096×4096", M: 4096, K: 4096, Bits: 4, Group: 64, Offsets: true, Count: 1}
	over, err := m.Tiled(w, 128, true)
	if err != nil {
		return nil, err
	}
	apart, err := m.Tiled(w, 128, false)
	if err != nil {
		return nil, err
	}
	add("4096×4096×128 W4, sequential by pipelined", "T-MAN §6.5.2", 1.5, apart.Seconds/over.Seconds, "")
	add("4096×4096×128 W4, pipelined by the tile unit alone", "T-MAN §6.5.2", 1.10, over.Seconds/over.Tiles, "")
	return list, nil
}

// scaling returns what the other paper's text says of energies and of the head on the CPU.
func (o Options) scaling(m *soc.Machine, x soc.Model) (list []Comparison) {
	large, _ := Shape("qwen2.5-3b")
	for _, y := range []*soc.Model{&x, &large} {
		y.Matrices = append([]soc.Matrix(nil), y.Matrices...)
		_ = Change{Head: HeadCPU}.Apply(y) // as the paper runs them; no bits change
	}
	m.Only = soc.ByTiles // it has no lookup
	defer func() { m.Only = "" }()
	small, err := m.Decode(&x, 16, o.Context)
	if err == nil {
		list = append(list, Comparison{"Qwen2.5-1.5B, batch 16, the CPU's share by its logits", "TTS §7.2.2", 0.5, small.Host / small.Seconds, small.Host / small.Seconds / 0.5, "measured: close to or above 50 %"})
	}
	eight, err1 := m.Decode(&x, 8, o.Context)
	one, err2 := m.Decode(&large, 1, o.Context)
	if err1 == nil && err2 == nil {
		r := eight.Joules / one.Joules
		list = append(list, Comparison{"energy of a step, 1.5B at batch 8 by 3B at batch 1", "TTS §7.2.3", 1, r, r, "measured: below 1"})
	}
	return list
}
