package npu

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/internal/output"
)

// Print writes the plan for people.
func (p *Plan) Print(w io.Writer) error {
	chip := p.Chips[0]
	for _, c := range p.Chips {
		if c.ID == p.Options.Chip {
			chip = c
		}
	}
	fmt.Fprintf(w, "%s on %s (%s): %s of weights, %s of keys and values a token.\nEvery time and energy below is modelled; %s.\n",
		p.Model.Name, chip.Name, chip.Arch, output.Bytes(int64(p.Weights)), output.Bytes(int64(p.KVBytes)), p.Options.measuredOn())
	if p.Model.Experts > 0 {
		fmt.Fprintf(w, "The %d experts of its layers are not in it, neither in memory nor in time: lutra-lab npu plan --moe plans them.\n", p.Model.Experts)
	}
	if p.Host == nil {
		fmt.Fprintf(w, "A session of it maps about %s: estimated, within %.0f %% or %s. Of a file --layers says what a server maps.\n", output.Bytes(p.Estimate), 100*estimated, output.Bytes(estimatedBytes))
	} else {
		fmt.Fprintf(w, "A session of it maps %s.\n\nLayers on the host\n", output.Bytes(p.Session))
		for _, line := range p.Host {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	fmt.Fprint(w, "\nTilings (T-MAN §4.1)\n")
	rows := [][]string{{"matrix", "count", "rows × columns", "bits", "K_lut", "M_iter d/p", "K_iter d/p", "tile", "tiles", "legal", "1 row", "16 rows"}}
	for _, t := range p.Matrices {
		rows = append(rows, []string{t.Name, fmt.Sprint(t.Count), fmt.Sprintf("%d × %d", t.M, t.K), fmt.Sprint(t.Bits), fmt.Sprint(t.Tiling.KLut),
			fmt.Sprintf("%d/%d", t.Tiling.MIterD, t.Tiling.MIterP), fmt.Sprintf("%d/%d", t.Tiling.KIterD, t.Tiling.KIterP),
			fmt.Sprintf("%d×%d", t.Rows, t.Cols), fmt.Sprint(t.Tiles), fmt.Sprint(t.Legal), string(t.One), string(t.Sixteen)})
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWhy %s is cut so\n", p.Timeline.Matrix)
	for _, line := range p.TCM.Search.Why {
		fmt.Fprintf(w, "  %s\n", line)
	}
	for _, r := range p.TCM.Search.Refused {
		fmt.Fprintf(w, "  %6d refused by %s\n", r.Count, r.Rule)
	}
	fmt.Fprintf(w, "\nTCM while %s is computed\n", p.Timeline.Matrix)
	rows = [][]string{{"begin", "size", "holds"}}
	for _, r := range p.TCM.Regions {
		rows = append(rows, []string{fmt.Sprintf("0x%06x", r.Begin), output.Bytes(int64(r.Bytes)), r.Name})
	}
	rows = append(rows, []string{"", output.Bytes(int64(p.TCM.Free)), "free"})
	if err := output.Table(w, rows); err != nil {
		return err
	}
	if err := p.Timeline.print(w); err != nil {
		return err
	}
	if err := p.printBounds(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nConstants of %s: T is measured in T-MAN, S in the test-time scaling paper, O by others, F is fitted, A assumed, M measured by the self-test; lutra-lab npu papers says how well\n", chip.Name)
	rows = [][]string{{"constant", "value", "source", ""}}
	for _, n := range chip.Numbers {
		rows = append(rows, []string{n.Name, fmt.Sprintf("%.6g %s", n.Value, n.Unit), string(n.Source), n.Note})
	}
	return output.Table(w, rows)
}

// measuredOn says what the constants were measured on.
func (o Options) measuredOn() string {
	switch {
	case o.Measured == nil:
		return "nothing was measured on a device"
	case !o.Measured.Chip:
		return "some constants are those of the emulation " + o.Measured.Backend + ", which say nothing about a chip"
	}
	return "some constants were measured on a device by lutra npu selftest"
}

func (t *Timeline) print(w io.Writer) error {
	fmt.Fprintf(w, "\nTimeline of %s × %d tokens: %d tiles, modelled %.0f µs in a pipeline, %.0f µs without (%.2f times)\n",
		t.Matrix, t.Tokens, t.Tiles, 1e6*t.Pipelined, 1e6*t.Sequential, t.Sequential/t.Pipelined)
	rows := [][]string{{"tile", "DMA µs", "HVX µs", "HMX µs"}}
	cells := map[int][]string{}
	for _, s := range t.First {
		if cells[s.Tile] == nil {
			cells[s.Tile] = make([]string, 3)
		}
		cells[s.Tile][s.Stage] = fmt.Sprintf("%.1f – %.1f", 1e6*s.Begin, 1e6*s.End)
	}
	for i := range min(4, len(t.First)/3) {
		rows = append(rows, append([]string{fmt.Sprint(i)}, cells[i][pipeline.Load], cells[i][pipeline.Unpack], cells[i][pipeline.Multiply]))
	}
	return output.Table(w, rows)
}

func (p *Plan) printBounds(w io.Writer) error {
	fmt.Fprintf(w, "\nModelled: a prompt of %d tokens, then decoding at a context of %d\n", p.Options.Prompt, p.Options.Context)
	rows := [][]string{{"SoC", "phase", "tok/s", "ms a step", "J/token", "W", "bound by", "DMA ms", "HVX ms", "HMX ms", "CPU ms", "tile rows in use"}}
	for _, c := range p.Chips {
		name := c.Name
		if !c.Fits {
			name += " (does not fit a session)"
		}
		add := func(phase string, b Bound) {
			used := "none"
			if b.Useful > 0 {
				used = fmt.Sprintf("%.0f %%", 100*b.Useful)
			}
			ms := func(s float64) string { return digits(1e3 * s) }
			rows = append(rows, []string{name, phase, digits(b.TokensPerSecond), ms(b.Seconds), fmt.Sprintf("%.3g", b.JoulesPerToken),
				fmt.Sprintf("%.2f", b.Watts), b.Limit, ms(b.DMA), ms(b.Vector), ms(b.Tiles), ms(b.Host), used})
			name = ""
		}
		add("prefill", c.Prefill)
		for _, b := range c.Decode {
			add(fmt.Sprintf("decode × %d", b.Tokens), b)
		}
	}
	return output.Table(w, rows)
}
