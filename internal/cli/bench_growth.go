package cli

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/bench"
)

func newBenchGrowth() *cobra.Command {
	o, asJSON := bench.DefaultGrowthOptions(), false
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure how costs grow with the batch, the context and the threads",
		Long: `Decodes in more and more sequences at once, behind longer and longer contexts, and
with more and more threads; each figure is the best of --reps runs. Remarks name the
points where something is wrong with the growth: where more sequences or threads bring
fewer tokens a second, or where a token's cost rises faster than in a line with the
context.`,
		Example: `  lutra bench growth
  lutra bench growth --shape falcon3-1b --batches 1,8,32 --contexts 128,512,2048 --svg growth.svg`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Growth(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.Source)
	f.IntSliceVar(&o.Batches, "batches", o.Batches, "sequences at once, ascending")
	f.IntSliceVar(&o.Contexts, "contexts", o.Contexts, "tokens before the decoded ones, ascending; those beyond the model's context are left out")
	f.IntSliceVar(&o.Threads, "threads", nil, "threads, ascending (default: 1 to all physical cores); the last number counts for batch and context")
	f.IntVar(&o.Decode, "decode", o.Decode, "tokens to decode a sequence")
	f.IntVarP(&o.Reps, "reps", "r", o.Reps, "runs a point, of which the best counts")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&o.SVG, "svg", "", "draw the curves into `FILE` too")
	return cmd
}
