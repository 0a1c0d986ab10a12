package npu

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// Figure is a paper's measurement beside the model's time.
type Figure struct {
	Paper    string  `json:"paper"`
	Where    string  `json:"where"` // in the paper
	What     string  `json:"what"`
	Low      float64 `json:"low"` // measured; the same as High unless the paper gives a range
	High     float64 `json:"high"`
	Modelled float64 `json:"modelled"`
	Ratio    float64 `json:"ratio"` // modelled by the nearer end of the range; 1 within it
	Kind     Kind    `json:"kind"`
	Note     string  `json:"note,omitempty"`
}

// Kind says what a figure tells of the model.
type Kind string

// The kinds. Figures of Fit are HeldOut alone.
const (
	HeldOut    Kind = "held out"       // no constant was chosen by it, and it follows from no other figure
	Fitted     Kind = "fitted to"      // a constant was chosen by it
	Derived    Kind = "derived"        // it follows from figures that are here, too
	Inequality Kind = "inequality"     // the text has a bound alone
	OfBytes    Kind = "ratio of bytes" // it follows from the sizes of what is read
	Missing    Kind = "not modelled"   // the model has no such quantity; its part is what it leaves out
)

// NewFigure returns what was measured, from low to high, beside what is modelled.
func NewFigure(paper, where, what string, low, high, modelled float64) Figure {
	f := Figure{Paper: paper, Where: where, What: what, Low: low, High: high, Modelled: modelled, Ratio: 1}
	if near := min(max(modelled, low), high); modelled != near {
		f.Ratio = modelled / near
	}
	return f
}

// off returns by how much a figure is missed, from 1 on.
func (f *Figure) off() float64 { return max(f.Ratio, 1/f.Ratio) }

// measured writes the range.
func (f *Figure) measured() string {
	if f.Low == f.High {
		return fmt.Sprintf("%.4g", f.Low)
	}
	return fmt.Sprintf("%.4g – %.4g", f.Low, f.High)
}

// row has the cells of FigureHead.
func (f *Figure) row() []string {
	if f.Kind == Missing && f.Modelled == 0 {
		return []string{f.What, f.Paper + " " + f.Where, f.measured(), "–", "–", string(f.Kind)}
	}
	return []string{f.What, f.Paper + " " + f.Where, f.measured(), fmt.Sprintf("%.4g", f.Modelled), fmt.Sprintf("%.2f", f.Ratio), string(f.Kind)}
}

var figureHead = []string{"figure", "in", "measured", "modelled", "ratio", ""}

// FigureTable returns figures as rows, with a head.
func FigureTable(list []Figure) [][]string {
	rows := [][]string{figureHead}
	for i := range list {
		rows = append(rows, list[i].row())
	}
	return rows
}

// Fit says how many of the held-out figures the model gives within 1.3 times, and its
// median miss.
func Fit(list []Figure) string {
	var off []float64
	within := 0
	for i := range list {
		if list[i].Kind != HeldOut {
			continue
		}
		off = append(off, list[i].off())
		if list[i].off() <= 1.3 {
			within++
		}
	}
	if len(off) == 0 {
		return "no figure is held out"
	}
	slices.Sort(off)
	return fmt.Sprintf("%d of %d held-out figures within 1.3 times, the median within %.2f", within, len(off), off[len(off)/2])
}

// Counts says how many figures there are of each kind.
func Counts(list []Figure) string {
	var parts []string
	for _, kind := range []Kind{HeldOut, Fitted, Derived, Inequality, OfBytes, Missing} {
		n := 0
		for i := range list {
			if list[i].Kind == kind {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return fmt.Sprintf("%d figures: %s", len(list), strings.Join(parts, ", "))
}

// PrintFigures writes figures for people.
func PrintFigures(w io.Writer, list []Figure) error {
	fmt.Fprintln(w, "What papers measured beside what is modelled. A constant was chosen by what is \"fitted to\"; what is \"held out\" follows from no constant that it chose, and from no other figure.")
	if err := output.Table(w, FigureTable(list)); err != nil {
		return err
	}
	for i := range list {
		if list[i].Note != "" {
			fmt.Fprintf(w, "%s, %s: %s\n", list[i].Paper, list[i].What, list[i].Note)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s.\n%s.\n", Counts(list), Fit(list))
	return err
}

// Figures returns the figures of T-MAN and of the test-time scaling paper, on Snapdragon 8 Gen 3. It leaves out figures that
// stand in drawings alone, since the texts give no numbers for them.
func Figures() ([]Figure, error) {
	chip, err := soc.Named("8gen3")
	if err != nil {
		return nil, err
	}
	c := &comparison{Machine: soc.NewMachine(chip)}
	c.kernels()
	c.bitnet()
	c.large()
	c.scaling()
	return c.list, c.err
}

// comparison collects figures. The first error ends up in err.
type comparison struct {
	*soc.Machine
	list []Figure
	err  error
}

func (c *comparison) add(f Figure, kind Kind, note string) {
	f.Kind, f.Note = kind, note
	c.list = append(c.list, f)
}

func (c *comparison) tman(where, what string, low, high, modelled float64, kind Kind, note string) {
	c.add(NewFigure("T-MAN", where, what, low, high, modelled), kind, note)
}

// of returns the cost of one call, and keeps its error.
func (c *comparison) of(cost soc.Cost, err error) soc.Cost {
	if c.err == nil {
		c.err = err
	}
	return cost
}

// The sizes that T-MAN's kernels are measured with: Llama's, Qwen's and BitNet's.
var measuredShapes = [][2]int{{4096, 4096}, {14336, 4096}, {4096, 14336}, {12288, 4096}, {4096, 12288}, {2560, 2560}, {6912, 2560}, {2560, 6912}}

// gptqMatrix is a matrix in groups of 64 with offsets; BitNet's have one scale.
func gptqMatrix(rows, cols, bits int) soc.Matrix {
	x := gptq
	x.bits = bits
	if rows == 2560 || cols == 2560 {
		x = ternary
	}
	return x.matrix("w", rows, cols, 1)
}

// native returns the cost of rows products with weights of bits bits that the tile unit reads
// as they are, as QNN's kernels do.
func (c *comparison) native(m, k, bits, rows int) soc.Cost {
	x := soc.Matrix{Name: "w", M: m, K: k, Bits: 4, Group: k, Count: 1}
	cost := c.of(c.Tiled(x, rows, true))
	cost.DMA = float64(m) * float64(k) * float64(bits) / 8 / c.Bandwidth(c.Route)
	cost.Vector, cost.Seconds = 0, max(cost.DMA, cost.Tiles)
	return cost
}

// kernels compares single kernels of T-MAN.
func (c *comparison) kernels() {
	w := gptqMatrix(4096, 4096, 4)
	counts := ablation.Recorded()
	blocks := float64(w.M) * float64(w.K) / (128 * 64)
	lut := max(float64(w.Bytes())/c.Bandwidth(soc.ByDMA), seconds(c.Machine, blocks*counts.Each("dequant-4")))
	c.tman("§6.5.1", "weights in fp16 from memory by lookups, W4", 4.9, 4.9, 2*float64(w.M)*float64(w.K)/c.Bandwidth(soc.ByLoad)/lut, Fitted, "")
	convert := seconds(c.Machine, blocks*counts.Each("convert-4"))
	c.tman("§6.5.1", "ConvertDQ by lookups, W4", 10.2, 10.2, convert/lut, HeldOut,
		"our ConvertDQ is vector code throughout; the paper's converts floats by slow instructions")
	over, apart := c.of(c.Tiled(w, 128, true)), c.of(c.Tiled(w, 128, false))
	c.tman("§6.5.2", "4096×4096×128 W4, one stage after the other by pipelined", 1.5, 1.5, apart.Seconds/over.Seconds, Fitted, "")
	c.tman("§6.5.2", "4096×4096×128 W4, pipelined by the tile unit alone", 1.10, 1.10, over.Seconds/over.Tiles, Fitted, "")
	c.tman("Fig. 5", "4096×4096 W4 by ConvertDQ, by the CPU", 3.8, 3.8, convert/(2*float64(w.M)*float64(w.K)/(c.HostRow.Value*1e9)), HeldOut, "as ConvertDQ")

	fp16, four, two, cpu := 0.0, []float64{}, []float64{}, 0.0
	for _, s := range measuredShapes {
		row := func(bits int) float64 { return c.Lookup(gptqMatrix(s[0], s[1], bits), 1).Seconds }
		fp16 = max(fp16, c.native(s[0], s[1], 16, 1).Seconds/row(2))
		two = append(two, c.native(s[0], s[1], 4, 1).Seconds/row(2))
		if s[0] != 2560 && s[1] != 2560 {
			four = append(four, c.native(s[0], s[1], 4, 1).Seconds/row(4))
		}
		cpu = max(cpu, 2*float64(s[0])*float64(s[1])*128/(c.HostCompute.Value*1e9)/c.of(c.Tiled(gptqMatrix(s[0], s[1], 2), 128, true)).Seconds)
	}
	c.tman("§6.2", "one row, QNN in FP16 by W2, at most", 8, 8, fp16, OfBytes, "")
	c.tman("§6.2", "one row, QNN in W4 by W2, least", 1.8, 1.8, slices.Min(two), HeldOut, "")
	c.tman("§6.2", "one row, QNN in W4 by W2, most", 2.5, 2.5, slices.Max(two), HeldOut, "")
	c.tman("§6.2", "one row, QNN in W4 by W4 (\"similar\")", 1, 1, mean(four), HeldOut, "")
	c.tman("§6.2", "128 rows, CPU by W2, at most", 30, 30, cpu, HeldOut, "")
	many := func(bits int) float64 { return c.of(c.Tiled(gptqMatrix(4096, 4096, bits), 128, true)).Seconds }
	c.tman("§6.2", "128 rows, 4096×4096, QNN in FP16 by W2 (\"comparable\")", 1, 1, c.native(4096, 4096, 16, 128).Seconds/many(2), HeldOut, "")
	c.tman("Fig. 5", "4096×4096 W4, ConvertDQ by its products alone", 10, 10, convert/c.Lookup(gptqMatrix(4096, 4096, 4), 1).Seconds, Derived, "as ConvertDQ")
}

// tmanContext is the mean context of T-MAN's decoding.
const tmanContext = soc.ExecutedContext

// bitnet compares BitNet-2B, Table 3, of which whole steps executed.
func (c *comparison) bitnet() {
	x, _ := Shape(stepModel)
	decode := c.Decode(&x, 1, tmanContext)
	prompt := c.of(wholePrompt(c.Machine, soc.ByBytes))
	decode.Joules, prompt.Joules = decode.Seconds*c.DecodePower.Value, prompt.Seconds*c.PrefillPower.Value
	const ours = "all packets of a step executed; nothing is fitted to it"
	c.tman("§6.3", "BitNet-2B, decode, tokens/s", 49.1, 49.1, 1/decode.Seconds, HeldOut, ours)
	c.tman("Table 3", "BitNet-2B, prompt of 1024, tokens/s", 5.01/0.0080, 5.01/0.0080, promptTokens/prompt.Seconds, HeldOut, "products in int8, as T-MAN's; its attention has no kernel of its own (§7)")
	c.tman("Table 3", "BitNet-2B, decode, J/token", 0.101, 0.101, decode.Joules, Derived, "4.91 W by its tokens/s")
	c.tman("Table 3", "BitNet-2B, prompt of 1024, J/token", 0.0080, 0.0080, prompt.Joules/promptTokens, Derived, "5.01 W by its tokens/s")
	one, many, half := c.qnnStep(&x, 4, 1, tmanContext), soc.Cost{}, soc.Cost{}
	for at := 128; at <= promptTokens; at += 128 {
		many.Add(c.qnnStep(&x, 4, 128, at))
		half.Add(c.qnnStep(&x, 16, 128, at))
	}
	c.tman("Table 3", "BitNet-2B in QNN's W4, decode, tokens/s", 4.72/0.134, 4.72/0.134, 1/one.Seconds, HeldOut, "")
	c.tman("Table 3", "BitNet-2B in QNN's W4, prompt of 1024, tokens/s", 4.96/0.0073, 4.96/0.0073, promptTokens/many.Seconds, HeldOut, "as the prompt above")
	c.tman("§6.3", "BitNet-2B, prompt, QNN in FP16 by W2 (\"similar\")", 1, 1, half.Seconds/prompt.Seconds, HeldOut, "")
	c.tman("§6.4", "BitNet-2B, decode, energy saved beside QNN's W4", 0.25, 0.25, 1-decode.Seconds*4.91/(one.Seconds*4.72), Derived, "")
	operations := 0.0
	for _, m := range x.Matrices {
		operations += 2 * float64(m.M) * float64(m.K) * float64(m.Count)
	}
	head := x.Matrices[len(x.Matrices)-1]
	layers := operations - 2*float64(head.M)*float64(head.K)
	host, hostPrompt := c.HostRow.Value*1e9/operations, c.HostCompute.Value*1e9/layers
	c.tman("Table 3", "bitnet.cpp, decode, tokens/s", 8.22/0.490, 8.22/0.490, host, Fitted, "")
	c.tman("Table 3", "bitnet.cpp, prompt, tokens/s", 8.22/0.196, 8.22/0.196, hostPrompt, Fitted, "")
	c.tman("Table 3", "llm.npu, which decodes on the CPU, tokens/s", 8.31/0.612, 8.31/0.612, host, Derived, "the rate is bitnet.cpp's")
	c.tman("§6.3", "BitNet-2B, decode, by llm.npu's", 3.1, 3.8, 1/(decode.Seconds*host), Derived, "")
	c.tman("§6.3", "prompts, by the CPU's, at most", 15, 15, promptTokens/(prompt.Seconds*hostPrompt), Derived, "")
	c.tman("§6.4", "BitNet-2B, prompt, bitnet.cpp's energy by W2", 24.5, 24.5, 8.22/hostPrompt/(prompt.Joules/promptTokens), Derived, "")
	c.tman("§6.4", "BitNet-2B, decode, bitnet.cpp's energy by W2", 4.9, 4.9, 8.22/host/decode.Joules, Derived, "")
	c.tman("§6.4", "power saved beside bitnet.cpp", 0.40, 0.40, 1-c.PrefillPower.Value/8.22, Derived, "both powers are Table 3's")
	c.tman("§6.4", "prompt, power saved beside llm.npu", 0.45, 0.45, 1-c.PrefillPower.Value/8.89, Derived, "both powers are Table 3's")
	c.tman("§6.4", "BitNet-2B, decode, energy saved beside llm.npu", 0.84, 0.84, 1-decode.Joules*host/8.31, Derived, "")
	llm := promptTokens/(8.89/0.0269) - promptTokens*layers/(c.TileUnit.Value*c.ByteRate.Value*1e9) // of which products on the tile unit are the least
	c.tman("Table 3", "llm.npu, prompt of 1024, ms", 1e3*promptTokens/(8.89/0.0269), 1e3*promptTokens/(8.89/0.0269), 1e3*(promptTokens/(8.89/0.0269)-llm), Missing, "its products in int8 alone; outliers on the CPU and waiting for it are not modelled")
	c.tman("§6.3", "BitNet-2B, prompt, by llm.npu's, at most", 1.4, 1.4, promptTokens/prompt.Seconds/(8.89/0.0269), Missing, "llm.npu's rate is the paper's")
	c.tman("§6.4", "BitNet-2B, prompt, energy saved beside llm.npu", 0.71, 0.71, 1-prompt.Joules/promptTokens/0.0269, Missing, "llm.npu's energy is the paper's")
}

// qnnStep returns the cost of a step of rows rows with weights as QNN has them.
func (c *comparison) qnnStep(x *soc.Model, bits, rows, context int) soc.Cost {
	sum := c.Beside(x, []soc.Work{{Rows: rows, Context: context}}, 1)
	for _, m := range x.Matrices {
		n := rows
		if m.Input == soc.Logits {
			n = 1
		}
		for range m.Count {
			sum.Add(c.native(m.M, m.K, bits, n))
		}
	}
	return sum
}

// executed returns the cost of a step of a model that executed, or an error's.
func (c *comparison) executed(s soc.Step, head bool) soc.Cost {
	x, err := soc.ExecutedStep(s)
	if err != nil {
		return c.of(soc.Cost{}, err)
	}
	layers := *x
	if !head {
		layers.End = nil
	}
	model, _ := Shape(s.Model)
	return c.Run(layers.Whole(model.Layers))
}

// large compares models of 8B, of which the paper's text has ratios.
func (c *comparison) large() {
	llama, _ := Shape(llamaStep.Model)
	c.tman("§6.3", "llama-3.1-8b in Q2_0, decode, by QNN's W4", 1.5, 1.8, c.qnnStep(&llama, 4, 1, tmanContext).Seconds/c.executed(llamaStep, true).Seconds, HeldOut,
		"all packets of a step of this model executed, in blocks of 64 as the paper's, but without offsets; QNN's products are modelled")
	x, _ := Shape("qwen3-8b")
	qnn := c.qnnStep(&x, 4, 1, tmanContext).Seconds
	c.of(soc.Cost{}, Change{Bits: 2}.Apply(&x))
	c.tman("§6.3", "qwen3-8b W2, decode, by QNN's W4", 1.5, 1.8, qnn/c.Decode(&x, 1, tmanContext).Seconds, HeldOut, "scaled from BitNet-2B's step")
}

// scaling compares the other paper's energies, its head on the CPU and its kernels.
func (c *comparison) scaling() {
	tts := func(where, what string, low, high, modelled float64, note string) {
		c.add(NewFigure("TTS", where, what, low, high, modelled), HeldOut, note)
	}
	bound := func(where, what string, low, high, modelled float64, note string) {
		c.add(NewFigure("TTS", where, what, low, high, modelled), Inequality, note)
	}
	small, _ := Shape("qwen2.5-1.5b")
	medium, _ := Shape("qwen2.5-3b")
	for _, x := range []*soc.Model{&small, &medium} {
		_ = Change{Head: HeadCPU}.Apply(x) // as the paper runs them; no bits change
	}
	c.Tiles = true                                          // it has no lookup products
	step := func(i int, x *soc.Model) (host, all float64) { // of a step whose layers executed
		s := qwenSteps[i]
		host = c.Decode(x, s.Batch, s.Context).Host
		return host, host + c.executed(s, false).Seconds
	}
	const theirs = "all packets of the layers executed, by tiles as in the paper; logits are modelled"
	host, sixteen := step(2, &small)
	bound("§7.2.2", "Qwen2.5-1.5B, batch 16, the CPU's share by its logits", 0.5, 1, host/sixteen, "\"close to or exceeds\"; "+theirs)
	_, eight := step(1, &small)
	_, one := step(3, &medium)
	bound("§7.2.3", "energy of a step, 1.5B at batch 8 by 3B at batch 1", 0, 1, eight/one, "of times by the same power; "+theirs)
	c.Tiles = false
	for _, x := range []struct {
		of  *soc.Model
		MiB float64
		GiB float64 // with the CPU's
	}{{&small, 1056, 1.3}, {&medium, 2090, 2.4}} {
		c.add(NewFigure("TTS", "§7.5", x.of.Name+", all memory, GiB", x.GiB, x.GiB, 0), Missing, "")
		c.add(NewFigure("TTS", "§7.2.2", x.of.Name+", shared memory, MiB", x.MiB, x.MiB, (float64(x.of.Bytes())+4096*float64(x.of.KVBytes()))/(1<<20)), OfBytes, "weights and keys and values of 4096 tokens; buffers of activations are not in it")
	}
	bound("§7.2.3", "power of the 1.5B model, W, within", 0, 5, c.DecodePower.Value, "T-MAN's for another model")
	c.add(NewFigure("TTS", "§7.2.3", "power of the 3B model, W", 4.3, 4.3, c.DecodePower.Value), HeldOut, "T-MAN's for another model")

	n := ablation.Recorded()
	time := func(packets float64) float64 { // of a weight
		return max(144.0/256/c.Bandwidth(soc.ByDMA), seconds(c.Machine, packets/256))
	}
	ours, latency := time(n.Each("super-groups")), 4*c.GatherPackets.Value
	conventional := n.Each("conventional-groups")
	tts("Fig. 15", "common groups by ours", 9.65, 19.04, time(conventional+1.5*latency)/ours, "a vscatter takes as long as a vgather, 24 to 48 packets: assumed")
	tts("Fig. 15", "order of tiles by ours", 1.82, 3.45, time(n.Each("tile-groups"))/ours, "")
	tts("Fig. 15", "ours by no dequantisation", 1.27, 1.27, ours/time(n.Each("no-dequantisation")), "")
	table := n.Each("softmax")
	tts("Fig. 14", "softmax, float32 by the table", 1.26, 2.19, (table-n.Each("exp-lut")+n.Each("exp-f32"))/table, "vgather's latency hidden")
	tts("Fig. 14", "softmax, float16 by the table, at most", 1.60, 1.60, (table-n.Each("exp-lut")+n.Each("exp-f16"))/table, "")
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}
