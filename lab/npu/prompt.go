package npu

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/dsp/ablation"
	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// promptTokens is the prompt of T-MAN's Table 3.
const promptTokens = 1024

// prompts models a prompt by the executed work of a chunk. Each strip is brought, unpacked and multiplied, in packets that wait
// for their operands, or one stage after the other.
func prompts(_ ablation.Counts, m *soc.Machine, a *Ablation) error {
	list, err := parseExecuted(executed)
	if err != nil {
		return err
	}
	x, _ := Shape(stepModel)
	a.Head = []string{"stages", "packets a layer", "longest shards", "MB a layer", "DMA ms", "HVX ms", "HMX ms", "products ms", "attention, layers' overhead ms", "tokens/s", "gain", "T-MAN"}
	rest := x
	rest.Matrices = nil
	others, err := m.Prefill(&rest, promptTokens)
	if err != nil {
		return err
	}
	const chunks = promptTokens / soc.Chunk
	times := float64(x.Layers * chunks)
	ms := func(s float64) string { return fmt.Sprintf("%.1f", 1e3*s) }
	rate := func(s float64) float64 { return promptTokens / (times*s + others.Seconds) }
	first := 0.0 // the rate that gains are by
	row := func(stages string, l *promptLayer, seconds float64, measured string) {
		if first == 0 {
			first = rate(seconds)
		}
		a.Rows = append(a.Rows, []string{stages, fmt.Sprintf("%.0f", l.packets), fmt.Sprintf("%.0f", l.longest), fmt.Sprintf("%.1f", l.moved/1e6), ms(times * l.DMA), ms(times * l.Vector), ms(times * l.Tiles),
			ms(times * seconds), ms(others.Seconds), fmt.Sprintf("%.0f", rate(seconds)), ratio(rate(seconds) / first), measured})
	}
	for _, by := range []struct {
		path         soc.Path
		in, measured string
	}{{soc.ByTiles, "", ""}, {soc.ByBytes, "int8, ", "626.2"}} {
		l, err := executedLayer(list, m, &x, by.path)
		if err != nil {
			return err
		}
		row(by.in+"one after the other", l, l.after, "")
		row(by.in+"beside each other", l, l.beside, by.measured)
		row(by.in+"the tile unit alone", l, l.Tiles, "")
	}
	a.note("a prompt of %d tokens in chunks of %d, whose layer's products executed; the tile unit's time and attention are modelled.", promptTokens, soc.Chunk)
	a.note("T-MAN's products of this model are in int8 (§6.2); its attention has no kernel of its own, which these figures lack. A strip of 128 rows is a tile of the pipeline.")
	a.note("int8 is modelled with %g times fp16's rate and %g cycles for the sums of a tile of 64×32, which others measured (%s).", m.ByteRate.Value, m.ByteRead.Value, m.ByteRate.Note)
	return nil
}

// promptLayer has the costs of a chunk's products in a layer.
type promptLayer struct {
	soc.Cost
	packets, longest, moved float64
	after, beside           float64 // seconds, with stages one after the other and beside each other
}

// executedLayer adds up the products of a chunk that executed by a path.
func executedLayer(list []Executed, m *soc.Machine, x *soc.Model, path soc.Path) (*promptLayer, error) {
	var l promptLayer
	defer func() { m.Bytes = false }()
	for _, e := range list {
		if e.Batch != soc.Chunk || e.Path != path {
			continue
		}
		for _, of := range x.Matrices {
			if of.Name != e.Matrix {
				continue
			}
			c := m.Executed(e.Longest, e.Moved)
			m.Bytes = path == soc.ByBytes
			tiled, err := m.Tiled(of, soc.Chunk, true)
			if err != nil {
				return nil, err
			}
			c.Vector, c.Tiles = c.Vector+m.Barriers(e.Barriers), tiled.Tiles
			l.Add(c)
			n := of.Padded().M / tiling.Lookups
			each := timeline.Costs{pipeline.Load: c.DMA / float64(n), pipeline.Unpack: c.Vector / float64(n), pipeline.Multiply: c.Tiles / float64(n)}
			l.after, l.beside = l.after+timeline.Total(n, each, false), l.beside+timeline.Total(n, each, true)
			l.packets, l.longest, l.moved = l.packets+e.Packets, l.longest+e.Longest, l.moved+e.Moved
		}
	}
	return &l, nil
}
