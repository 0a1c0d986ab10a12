package npu

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/dsp/ablation"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// stepModel is the model whose matrices were executed.
const stepModel = "bitnet-2b"

// behindAttention is the input of the matrix before which a layer's attention is: it uses TCM itself.
const behindAttention = "attn_output"

// executed is what the emulated device took for the products of a layer of stepModel: lines of
// batch, matrix, path, packets, those of longest shards, barriers, bytes that DMA moved.
//
//go:embed step.txt
var executed string

// Executed has the counts of one matrix's product, with tables of activations if it is the first of its input.
type Executed struct {
	Batch    int
	Matrix   string
	Path     soc.Path
	Packets  float64 // of all workers
	Longest  float64 // of each operation's longest shard
	Barriers float64 // operations that workers shared
	Moved    float64 // bytes, by DMA
}

func parseExecuted(text string) (list []Executed, err error) {
	for line := range strings.Lines(text) {
		var e Executed
		if n, err := fmt.Sscan(line, &e.Batch, &e.Matrix, &e.Path, &e.Packets, &e.Longest, &e.Barriers, &e.Moved); n != 7 {
			return nil, fmt.Errorf("npu: line %.60q of executed products: %w", line, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// steps models decoding by executed packets: the longest shards' packets or bytes at DMA's rate, whichever takes longer, and
// barriers. The head and attention are modelled by packets a line.
func steps(_ ablation.Counts, m *soc.Machine, a *Ablation) error {
	list, err := parseExecuted(executed)
	if err != nil {
		return err
	}
	x, _ := Shape(stepModel)
	head := x.Matrices[len(x.Matrices)-1]
	rest := x // what does not execute here
	rest.Matrices = nil
	a.Head = []string{"batch", "packets a layer", "longest shards", "barriers", "MB a layer", "HVX ms", "DMA ms", "HMX ms", "products ms", "each by itself ms", "head ms", "attention, layers' overhead ms", "tokens/s", "by one row's", "TTS's way", "by one row's", "kernels alone", "T-MAN", "by T-MAN"}
	list = slices.DeleteFunc(list, func(e Executed) bool { return e.Batch >= soc.Chunk })
	byTiles, theirs := *m, x // TTS's way: products of all rows by tiles, the head on the CPU
	byTiles.Only, theirs.Matrices = soc.ByTiles, slices.Clone(x.Matrices)
	_ = Change{Head: HeadCPU}.Apply(&theirs) // no bits change
	var one [2]float64
	for at := 0; at < len(list); {
		batch := list[at].Batch
		var layer, sum soc.Cost
		var packets, longest, barriers, moved, alone float64
		end := at
		for end < len(list) && list[end].Batch == batch {
			end++
		}
		before := list[end-1] // of the layer before
		for ; at < end; at++ {
			e := list[at]
			c, itself, err := executedProduct(m, &x, e, before)
			if err != nil {
				return err
			}
			before = e
			layer.Add(c)
			alone += itself
			packets, longest, barriers, moved = packets+e.Packets, longest+e.Longest, barriers+e.Barriers, moved+e.Moved
		}
		for range x.Layers {
			sum.Add(layer)
		}
		logits, _, err := m.Product(head, batch)
		if err != nil {
			return err
		}
		others, err := m.Decode(&rest, batch, tmanContext)
		if err != nil {
			return err
		}
		kernels := sum.Seconds + logits.Seconds
		rate := float64(batch) / (kernels + others.Seconds)
		measured, by := "", ""
		if batch == 1 {
			measured, by = "49.1", fmt.Sprintf("%.2f", rate/49.1)
		}
		step, err := byTiles.Decode(&theirs, batch, tmanContext)
		if err != nil {
			return err
		}
		way := float64(batch) / step.Seconds
		if batch == 1 {
			one = [2]float64{rate, way}
		}
		ms := func(s float64) string { return fmt.Sprintf("%.2f", 1e3*s) }
		a.Rows = append(a.Rows, []string{fmt.Sprint(batch), fmt.Sprintf("%.0f", packets), fmt.Sprintf("%.0f", longest), fmt.Sprint(barriers), fmt.Sprintf("%.1f", moved/1e6), ms(sum.Vector), ms(sum.DMA), ms(sum.Tiles),
			ms(sum.Seconds), ms(alone * float64(x.Layers)), ms(logits.Seconds), ms(others.Seconds), fmt.Sprintf("%.1f", rate), ratio(rate / one[0]), fmt.Sprintf("%.1f", way), ratio(way / one[1]), fmt.Sprintf("%.1f", float64(batch)/kernels), measured, by})
	}
	a.Notes = append(a.Notes, "a layer's overhead is fitted to T-MAN's 49.1 with modelled packets in place of executed ones; \"kernels alone\" has neither it nor attention",
		"packets executed in shards for four vector threads: an operation takes its longest one and a barrier; the head's are counted a line; overlap of DMA, HVX and HMX is what the packets' operands allow, its time modelled",
		"the first tiles of a product by lookups come while the one before ends, unless attention is between them, and strips of matrices of one input are one pipeline; \"each by itself\" is without both")
	a.note("TTS's way: the same model with products of all rows by tiles and the head on the CPU, all of it modelled; the curve of its Figure 11 is drawn, and its text has no numbers of it.")
	return nil
}

// executedProduct returns the cost of a layer's product after the one before it, and the seconds that it takes by itself. Its
// units' stages of one tile, or of strips that go together, are seen where nothing of it comes before the other's end.
func executedProduct(m *soc.Machine, x *soc.Model, e, before Executed) (c soc.Cost, alone float64, err error) {
	matrix := func(name string) soc.Matrix {
		return x.Matrices[slices.IndexFunc(x.Matrices, func(of soc.Matrix) bool { return of.Name == name })]
	}
	of := matrix(e.Matrix)
	c = m.Executed(e.Longest, e.Moved)
	n, ahead := e.Barriers, of.Input == matrix(before.Matrix).Input // strips that go together take a barrier
	if e.Path == soc.ByLookup {
		tiles, err := m.LookupTiles(of, e.Batch)
		if err != nil {
			return c, 0, err
		}
		n, ahead = float64(tiles), before.Path == soc.ByLookup && of.Input != behindAttention
	} else {
		tiled, err := m.Tiled(of, e.Batch, true)
		if err != nil {
			return c, 0, err
		}
		c.Tiles, ahead = tiled.Tiles, ahead && before.Path != soc.ByLookup
	}
	each := timeline.Costs{c.DMA / n, (c.Vector + m.Barriers(e.Barriers)) / n, c.Tiles / n}
	alone = timeline.Total(int(n), each, true)
	if c.Seconds = alone; ahead {
		c.Seconds = timeline.Steady(int(n), each)
	}
	return c, alone, nil
}
