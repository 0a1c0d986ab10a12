package cli

import "github.com/spf13/cobra"

func newBenchGrowth() *cobra.Command {
	o, asJSON := defaultGrowthOptions(), false
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
			r, err := benchGrowth(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	sourceFlags(f, &o.benchSource)
	f.IntSliceVar(&o.batches, "batches", o.batches, "sequences at once, ascending")
	f.IntSliceVar(&o.contexts, "contexts", o.contexts, "tokens before the decoded ones, ascending; those beyond the model's context are left out")
	f.IntSliceVar(&o.threads, "threads", nil, "threads, ascending (default: 1 to all physical cores); the last number counts for batch and context")
	f.IntVar(&o.decode, "decode", o.decode, "tokens to decode a sequence")
	f.IntVarP(&o.reps, "reps", "r", o.reps, "runs a point, of which the best counts")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&o.svg, "svg", "", "draw the curves into `FILE` too")
	return cmd
}
