package mixtures

import (
	"fmt"
	"io"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// shownExperts is the number of a layer's most popular experts that are listed.
const shownExperts = 4

// PrintCalibration writes a calibration for people.
func PrintCalibration(w io.Writer, c *calibration.Calibration) error {
	s := c.Shape
	fmt.Fprintf(w, "%s: %d layers of %d experts, of which a token takes %d\n", name(s), s.Layers, s.Experts, s.Chosen)
	for i := range c.Sets {
		set := &c.Sets[i]
		fmt.Fprintf(w, "\n%s: %d prompts, %d tokens\n", set.Name, set.Prompts, set.Tokens)
		rows := [][]string{{"layer", "imbalance r", fmt.Sprintf("most popular %d, share of tokens", min(shownExperts, s.Experts)), "choices they cover", "half of all covers"}}
		for l := range set.Layers {
			x := &set.Layers[l]
			var top []string
			for _, e := range x.Order[:min(shownExperts, s.Experts)] {
				top = append(top, fmt.Sprintf("%d: %s", e, percent(float64(x.Tokens[e])/float64(set.Tokens))))
			}
			rows = append(rows, []string{fmt.Sprint(l), fmt.Sprintf("%.2f", x.Imbalance), strings.Join(top, ", "), percent(x.Covered(shownExperts)), percent(x.Covered((s.Experts + 1) / 2))})
		}
		if err := output.Table(w, rows); err != nil {
			return err
		}
		var chunks []string
		for _, x := range set.Chunks {
			chunks = append(chunks, fmt.Sprintf("%d of at most %d", x.Count, x.Size))
		}
		fmt.Fprintf(w, "chunks of prompts: %s\n", strings.Join(chunks, ", "))
	}
	if len(c.Overlaps) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nHow well %s foretells the others: experts that are among the K most popular of both\n", c.Sets[0].Name)
	rows := [][]string{{"other", "K", "median of layers", "mean", "the other's choices that they cover"}}
	for _, o := range c.Overlaps {
		rows = append(rows, []string{o.Other, fmt.Sprint(o.K), percent(o.Median), percent(o.Mean), percent(o.Covered)})
	}
	return output.Table(w, rows)
}

// PrintPlan writes a plan for people.
func PrintPlan(w io.Writer, p *experts.Plan) error {
	s, k := p.Shape, p.Device.Costs
	fmt.Fprintf(w, "%s on %s: chunks of %d tokens, groups of %d experts, capacities by %s.\n%s.\nTimes are modelled; nothing was measured on a device. A launch takes %.3g ms; weights are read at %.3g GB/s; the device\ncomputes %.4g and the CPU %.4g GMAC/s (%s).\n\n",
		name(s), p.Device.Name, p.Chunk, p.GroupSize, p.Sizing, p.Why, k.Launch, k.Read, k.Device, k.Host, p.Device.Source)
	rows := [][]string{{"on", "launches/token", "padding", "overflow", "on the CPU", "weights", "ms/token"}, append([]string{"the data set it is made of"}, cells(&p.Choice)...)}
	for i := range p.Checks {
		rows = append(rows, append([]string{p.Checks[i].Set}, cells(&p.Checks[i].Choice)...))
	}
	if len(p.Others) > 0 {
		if err := output.Table(w, rows); err != nil {
			return err
		}
		fmt.Fprintf(w, "\nWhat was weighed in chunks of %d tokens (--json has all %d); * is on the front of all\n", p.Chunk, len(p.Others))
		rows = [][]string{{"G", "capacities", "launches/token", "padding", "overflow", "on the CPU", "weights", "ms/token", "front"}}
		for i := range p.Others {
			o := &p.Others[i]
			if o.Chunk != p.Chunk {
				continue
			}
			mark := ""
			if o.Front {
				mark = "*"
			}
			if *o == p.Choice {
				mark += " chosen"
			}
			rows = append(rows, append(append([]string{fmt.Sprint(o.GroupSize), o.Sizing}, cells(o)...), mark))
		}
		if err := output.Table(w, rows); err != nil {
			return err
		}
	}
	return printLayers(w, p)
}

func printLayers(w io.Writer, p *experts.Plan) error {
	fmt.Fprintf(w, "\nLayers: %s of experts on the device\n", output.Bytes(p.Bytes))
	rows := [][]string{{"layer", "r", "C_base", "n_max", "tiers", "launches", "experts on the NPU", "weights"}}
	shown := 0
	for i := range p.Layers {
		l := &p.Layers[i]
		launches, on, bytes := 0, 0, int64(0)
		for _, g := range l.Groups {
			if g.Placement == experts.NPU {
				launches, on, bytes = launches+1, on+len(g.Experts), bytes+g.Bytes
			}
		}
		rows = append(rows, []string{fmt.Sprint(i), fmt.Sprintf("%.2f", l.Imbalance), fmt.Sprint(l.Base), fmt.Sprint(l.Busiest), strings.Trim(fmt.Sprint(l.Tiers), "[]"),
			fmt.Sprint(launches), fmt.Sprintf("%d of %d", on, p.Shape.Experts), output.Bytes(bytes)})
		if l.Imbalance > p.Layers[shown].Imbalance && i < len(p.Layers)-1 { // of the last one prompts want little
			shown = i
		}
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nGroups of layer %d, the least balanced but for the last; rows are those of a chunk on average\n", shown)
	rows = [][]string{{"experts", "capacity", "on", "rows", "padding", "overflow", "weights", "why"}}
	for _, g := range p.Layers[shown].Groups {
		rows = append(rows, []string{strings.Trim(fmt.Sprint(g.Experts), "[]"), fmt.Sprint(g.Capacity), strings.ToUpper(string(g.Placement)), fmt.Sprintf("%.1f", g.Expected.Rows),
			fmt.Sprintf("%.1f", g.Expected.Padding), fmt.Sprintf("%.1f", g.Expected.Overflow), output.Bytes(g.Bytes), g.Why})
	}
	return output.Table(w, rows)
}

func cells(c *experts.Choice) []string {
	return []string{fmt.Sprintf("%.3f", c.Launches), percent(c.Padding), percent(c.Overflow), percent(c.Host), output.Bytes(c.Bytes), fmt.Sprintf("%.3g", c.Cost)}
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func name(s experts.Shape) string {
	if s.Model == "" {
		return "a model"
	}
	return output.OneLine(s.Model)
}
