package npu

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/dsp/ablation"
	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/internal/npu/soc"
	"github.com/lutra-lm/lutra/internal/npu/tiling"
	"github.com/lutra-lm/lutra/internal/npu/timeline"
)

// promptTokens is the prompt of T-MAN's Table 3.
const promptTokens = 1024

// prompts models a prompt by what a chunk of it executes: each strip is brought, unpacked and
// multiplied, in packets that wait for their operands, or one stage after the other.
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
	var layer soc.Cost
	var packets, longest, moved float64
	seconds := map[bool]float64{}
	for _, e := range list {
		if e.Batch != soc.Chunk {
			continue
		}
		for _, of := range x.Matrices {
			if of.Name != e.Matrix {
				continue
			}
			c := m.Executed(e.Longest, e.Moved)
			tiled, err := m.Tiled(of, soc.Chunk, true)
			if err != nil {
				return err
			}
			c.Vector, c.Tiles = c.Vector+m.Barriers(e.Barriers), tiled.Tiles
			layer.Add(c)
			n := of.Padded().M / tiling.Lookups
			each := timeline.Costs{pipeline.Load: c.DMA / float64(n), pipeline.Unpack: c.Vector / float64(n), pipeline.Multiply: c.Tiles / float64(n)}
			for _, beside := range []bool{false, true} {
				seconds[beside] += timeline.Total(n, each, beside)
			}
			packets, longest, moved = packets+e.Packets, longest+e.Longest, moved+e.Moved
		}
	}
	times := float64(x.Layers * chunks)
	ms := func(s float64) string { return fmt.Sprintf("%.1f", 1e3*s) }
	rate := func(s float64) float64 { return promptTokens / (times*s + others.Seconds) }
	for _, r := range []struct {
		stages   string
		seconds  float64
		measured string
	}{{"one after the other", seconds[false], ""}, {"beside each other", seconds[true], "626.2"}, {"the tile unit alone", layer.Tiles, ""}} {
		a.Rows = append(a.Rows, []string{r.stages, fmt.Sprintf("%.0f", packets), fmt.Sprintf("%.0f", longest), fmt.Sprintf("%.1f", moved/1e6), ms(times * layer.DMA), ms(times * layer.Vector), ms(times * layer.Tiles),
			ms(times * r.seconds), ms(others.Seconds), fmt.Sprintf("%.0f", rate(r.seconds)), ratio(rate(r.seconds) / rate(seconds[false])), r.measured})
	}
	a.note("a prompt of %d tokens in chunks of %d, whose layer's products executed; the tile unit's time and attention are modelled.", promptTokens, soc.Chunk)
	a.note("T-MAN's attention has no kernel of its own, which this figure lacks. A strip of 128 rows is a tile of the pipeline.")
	return nil
}
