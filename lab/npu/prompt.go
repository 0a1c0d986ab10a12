package npu

import (
	"fmt"

	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// promptTokens is the prompt of T-MAN's Table 3.
const promptTokens = 1024

// arranged says how a prompt's packets are to run.
type arranged func([]timeline.Work) []timeline.Work

func beside(list []timeline.Work) []timeline.Work { return list }

// wholePrompt returns the cost of a prompt of stepModel, of the packets of its first and last chunk, between which attention
// grows evenly, with products by tiles of fp16 or of bytes.
func wholePrompt(m *soc.Machine, path soc.Path) (soc.Cost, error) { return promptIn(m, path, beside) }

func promptIn(m *soc.Machine, path soc.Path, in arranged) (sum soc.Cost, err error) {
	const chunks = promptTokens / soc.Chunk
	shape, _ := Shape(stepModel)
	for _, context := range []int{soc.Chunk, promptTokens} {
		x, err := soc.ExecutedStep(soc.Step{Model: stepModel, Batch: 1, Rows: soc.Chunk, Context: context, Path: soc.ByTiles})
		if err != nil {
			return sum, err
		}
		list := x.Whole(shape.Layers)
		if path == soc.ByBytes {
			list = rest(list)
		}
		c := m.Run(in(list))
		for range chunks / 2 {
			sum.Add(c)
		}
	}
	if path == soc.ByBytes {
		x, err := soc.ExecutedStep(soc.Step{Model: stepModel, Batch: 1, Rows: soc.Chunk, Path: soc.ByBytes})
		if err != nil {
			return sum, err
		}
		c := m.Run(in(x.Layer))
		c.Seconds -= m.Request.Value / 1e3 // the products are part of a chunk's request
		for range shape.Layers * chunks {
			sum.Add(c)
		}
	}
	return sum, nil
}

// rest leaves out the products of matrices: what copies, unpacks and multiplies tiles from where rows become tiles until
// something else is computed. Rows become tiles, and tiles rows, with products in bytes, too.
func rest(list []timeline.Work) []timeline.Work {
	within := false
	return timeline.Without(list, func(i int) bool {
		switch list[i].Op {
		case "rows_to_tiles_of_products":
			within = true
			return false
		case "copy", "tiles_of_codes", "the_tile_unit_in_fp16":
			return within
		case "tiles_of_products_to_rows":
			return false
		}
		within = false
		return false
	})
}

// prompts models a prompt by executed packets, which wait for their operands, or go one after the other.
func prompts(_ ablation.Counts, m *soc.Machine, a *Ablation) error {
	a.Head = []string{"stages", "DMA ms", "HVX ms", "HMX ms", "prompt ms", "tokens/s", "gain", "T-MAN", "by T-MAN"}
	ms := func(s float64) string { return fmt.Sprintf("%.1f", 1e3*s) }
	first := 0.0 // the rate that gains are by
	for _, by := range []struct {
		path     soc.Path
		stages   string
		in       arranged
		measured float64
	}{{soc.ByTiles, "one after the other", timeline.InTurn, 0}, {soc.ByTiles, "beside each other", beside, 0},
		{soc.ByBytes, "int8, one after the other", timeline.InTurn, 0}, {soc.ByBytes, "int8, beside each other", beside, 626.2}} {
		c, err := promptIn(m, by.path, by.in)
		if err != nil {
			return err
		}
		rate := promptTokens / c.Seconds
		if first == 0 {
			first = rate
		}
		row := []string{by.stages, ms(c.DMA), ms(c.Vector), ms(c.Tiles), ms(c.Seconds), fmt.Sprintf("%.0f", rate), ratio(rate / first), "", ""}
		if by.measured > 0 {
			row[7], row[8] = fmt.Sprint(by.measured), fmt.Sprintf("%.2f", rate/by.measured)
		}
		a.Rows = append(a.Rows, row)
	}
	a.note("A prompt of %d tokens in chunks of %d: all packets of the first and the last executed; the tile unit's time is modelled.", promptTokens, soc.Chunk)
	a.note("T-MAN's products of this model are in int8 (§6.2), and so is the row beside its figure; its attention has no kernel of its own (§7), which these rows have.")
	a.note("int8 is modelled with %g times fp16's rate and %g cycles for the sums of a tile of 64×32, which others measured (%s).", m.ByteRate.Value, m.ByteRead.Value, m.ByteRate.Note)
	return nil
}
