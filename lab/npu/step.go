package npu

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// stepModel is the model whose matrices were executed.
const stepModel = "bitnet-2b"

// Steps of other models that executed, as the papers run them: two bits in blocks, and four bits by the tile unit.
var (
	llamaStep = soc.Step{Model: "llama-3.1-8b", Batch: 1, Rows: 1, Context: tmanContext, Path: soc.ByLookup}
	qwenSteps = []soc.Step{
		{Model: "qwen2.5-1.5b", Batch: 1, Rows: 1, Context: 1024, Path: soc.ByTiles}, {Model: "qwen2.5-1.5b", Batch: 8, Rows: 1, Context: 1024, Path: soc.ByTiles},
		{Model: "qwen2.5-1.5b", Batch: 16, Rows: 1, Context: 1024, Path: soc.ByTiles}, {Model: "qwen2.5-3b", Batch: 1, Rows: 1, Context: 1024, Path: soc.ByTiles},
	}
)

// steps models decoding by executed packets: each begins when its unit is free and what it waits for is there.
func steps(_ ablation.Counts, m *soc.Machine, a *Ablation) error {
	x, _ := Shape(stepModel)
	a.Head = []string{"batch", "packets a layer", "longest shards", "barriers", "MB a layer", "HVX ms", "DMA ms", "HMX ms", "head ms", "step ms", "tokens/s", "by one row's", "TTS's way", "by one row's", "T-MAN", "by T-MAN"}
	byTiles, theirs := *m, x // TTS's way: products of all rows by tiles, the head on the CPU
	byTiles.Tiles, theirs.Matrices = true, slices.Clone(x.Matrices)
	_ = Change{Head: HeadCPU}.Apply(&theirs) // no bits change
	var one [2]float64
	for _, batch := range soc.ExecutedBatches {
		executed, err := soc.ExecutedBatch(batch)
		if err != nil {
			return err
		}
		step, head := m.Decode(&x, batch, tmanContext), m.Run(executed.End)
		var longest, barriers, moved float64
		for _, w := range executed.Layer {
			longest, barriers, moved = longest+w.Packets, barriers+w.Barriers, moved+w.Moved
		}
		rate, measured, by := float64(batch)/step.Seconds, "", ""
		if batch == 1 {
			measured, by = "49.1", fmt.Sprintf("%.2f", rate/49.1)
		}
		other := float64(batch) / byTiles.Decode(&theirs, batch, tmanContext).Seconds
		if batch == 1 {
			one = [2]float64{rate, other}
		}
		ms := func(s float64) string { return fmt.Sprintf("%.2f", 1e3*s) }
		a.Rows = append(a.Rows, []string{fmt.Sprint(batch), fmt.Sprint(len(executed.Layer)), fmt.Sprintf("%.0f", longest), fmt.Sprint(barriers), fmt.Sprintf("%.1f", moved/1e6), ms(step.Vector), ms(step.DMA), ms(step.Tiles),
			ms(head.Seconds - m.Request.Value/1e3), ms(step.Seconds), fmt.Sprintf("%.1f", rate), ratio(rate / one[0]), fmt.Sprintf("%.1f", other), ratio(other / one[1]), measured, by})
	}
	a.note("All packets of a step at %d tokens executed, in shards for four vector threads; \"head\" is the last layer's end and logits. No constant of these times is fitted to a model's rate.", tmanContext)
	a.note("Assumed: a barrier %g µs, a request %g ms. Sampling, embeddings and T-MAN's own attention are not in it.", m.Barrier.Value, m.Request.Value)
	a.note("TTS's way: the same model with products of all rows by tiles and the head on the CPU, all of it modelled; the curve of its Figure 11 is drawn, and its text has no numbers of it.")
	return nil
}
