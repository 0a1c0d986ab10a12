package npu

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// checkMeasured refuses reports whose times a plan cannot use.
func checkMeasured(r *selftest.Report) error {
	switch {
	case r == nil:
		return nil
	case r.Running != "":
		return fmt.Errorf("the self-test of the report did not end: %s", r.Verdict.Text)
	case !r.Verdict.OK:
		return fmt.Errorf("the self-test of the report failed: %s", r.Verdict.Text)
	case len(r.Times) == 0:
		return errors.New("the self-test of the report measured nothing")
	}
	return nil
}

// measured turns a self-test's times into a chip's constants. DMA and the tile unit get the largest rate. The clock comes from
// the lookups of a layer, if they took longer than DMA of its weights, and a gather's packets from that clock.
func measured(c *soc.Chip, r *selftest.Report) {
	set := func(n *soc.Number, v float64, what string) {
		note := what + ", by lutra npu selftest"
		if !r.Chip {
			note += " on " + r.Backend + ", which is no chip"
		}
		*n = soc.Number{Value: v, Unit: n.Unit, Source: soc.Measured, Note: note}
	}
	best := func(n *soc.Number, name, what string) {
		most := 0.0
		for _, t := range r.Times {
			if t.Name == name {
				most = max(most, t.Value)
			}
		}
		if most > 0 {
			set(n, most, what)
		}
	}
	best(&c.DMA, selftest.DMA, "the fastest copy")
	best(&c.TileUnit, selftest.TileUnit, "the fastest product")
	if r.Device.Contexts > 0 {
		set(&c.Threads, float64(r.Device.Contexts), "as the device says")
	}
	if r.Device.TCM > 0 {
		set(&c.TCM, float64(r.Device.TCM), "as the device says")
	}
	if t, ok := r.Time(selftest.BitNetLayer, 0); ok {
		vector, dma := layerSeconds(c)
		if took := t.Value / 1e3; took > dma {
			set(&c.Clock, c.Clock.Value*vector/took, "what a layer of BitNet-2B took, DMA hidden")
		}
	}
	if t, ok := r.Time(selftest.Gathers, 0); ok {
		set(&c.GatherPackets, max(1, t.Value*c.Clock.Value/c.CyclesPerPacket.Value), "a gather of softmax with what is computed of it")
	}
}

// layerSeconds returns what the vector threads take for the self-test's layer, and DMA of its weights.
func layerSeconds(c *soc.Chip) (vector, dma float64) {
	m, before := soc.NewMachine(*c), 0
	for _, p := range selftest.LayerProducts {
		x := soc.Matrix{M: p.M, K: p.K, Bits: 2, Group: p.K, Count: 1}
		cost := m.Lookup(x, 1)
		vector, dma = vector+cost.Vector, dma+cost.DMA
		if p.K != before {
			vector, before = vector+m.Tables(x, 1).Vector, p.K
		}
	}
	return vector, dma
}
