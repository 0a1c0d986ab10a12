package mixtures

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/output"
)

// Print writes the report for people.
func (r *PlacementReport) Print(w io.Writer) error {
	x := r.Model
	fmt.Fprintf(w, "%s on %s: %d layers, %d of %d experts a token; %s, imbalance %.2f.\nEvery time, energy and cycle below is modelled; nothing was measured on a device.\n",
		x.Shape.Model, r.Machine.Name, x.Layers, x.Chosen, x.Experts, r.Routing, r.Imbalance)
	for i := range r.Settings {
		s := &r.Settings[i]
		fmt.Fprintf(w, "\nPrompt of %d tokens in chunks of %d; the plan: groups of %d, %s, %.3g %% padding, %.3g %% overflow, %.3g %% on the CPU\n",
			s.Prompt, s.Chunk, s.Plan.GroupSize, s.Plan.Sizing, 100*s.Plan.Padding, 100*s.Plan.Overflow, 100*s.Plan.Host)
		rows := [][]string{{"placement", "TTFT s", "attention", "experts", "loading", "copies", "launches", "mJ/token", "CPU Gcycles", "time", "energy", "cycles"}}
		best := s.cost(hexagon.PlacementAll)
		for _, c := range s.Costs {
			rows = append(rows, []string{string(c.Placement), num(c.Seconds), num(c.Attention), num(c.Experts), num(c.Loading), num(c.Copies), fmt.Sprintf("%.0f", c.Launches),
				num(1e3 * c.PerToken), num(c.Cycles / 1e9), times(c.Seconds / best.Seconds), times(c.Joules / best.Joules), times(c.Cycles / best.Cycles)})
		}
		if err := output.Table(w, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\nConstants of %s: P is what plans reckon with, F fitted to figures of papers (lutra-lab npu papers says how well), T measured in T-MAN, A assumed\n", r.Machine.Name)
	rows := [][]string{{"constant", "value", "", "source", ""}}
	for _, n := range r.Machine.Numbers() {
		rows = append(rows, []string{n.Name, fmt.Sprintf("%.4g", n.Value), n.Unit, string(n.Source), n.Note})
	}
	return output.Table(w, rows)
}

func num(x float64) string { return fmt.Sprintf("%.3g", x) }

func times(x float64) string { return fmt.Sprintf("%.2f ×", x) }
