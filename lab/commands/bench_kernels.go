package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchKernels() *cobra.Command {
	o, asJSON := bench.DefaultKernelOptions(), false
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Measure matrix products against this machine's own peak",
		Long: `Measures y[N][M] = x[N][K] · W[M][K] with every kernel this machine has, quantising
and arranging the activations included, beside the machine's own limits measured in
the same run: its int8 multiply rate, and for N = 1, whose weights come from memory,
reading the same bytes in turns with the products. A ratio above 1 is a lookup kernel
doing what the multipliers cannot. The kernels that the engine uses are printed first,
and why: a measurement at the start chooses them, or LUTRA_KERNEL does. lut looks sums
up in tables, lut+mad does so for whole tiles of tokens and multiplies the rest.

On one thread (--threads 1) only the time that the thread computes counts, and the
multiply rate is measured in turns with the products: other work on the machine
disturbs that least.

--chosen measures instead, for every packing with several kernels and 1 to 32 tokens, the
kernel that is used in turns with each that LUTRA_KERNEL could force, and prints the best
of these and the ratio. Every product reads its weights from memory, as those of a
model's steps do.

It takes a minute or two; --full measures a second shape, more batch sizes, and one
thread as well as all. Ctrl-C stops it and prints the rows so far.

--compare runs another program after each round of ours and prints the ratios of
neighbouring runs to the best of our kernels, for one packing and one number of
threads. --compare-pattern is a regular expression with groups (?P<m>), (?P<k>),
(?P<n>) and (?P<gflops>), or (?P<value>) for GMAC/s.`,
		Example: `  lutra-lab bench kernels
  lutra-lab bench kernels --packings I1,I2 --shapes 2048x8192 --tokens 1,32 --json
  lutra-lab bench kernels --chosen --threads 1
  lutra-lab bench kernels --full`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("tokens") {
				o.Tokens = nil // as --full says
			}
			if !cmd.Flags().Changed("threads") {
				o.Threads = nil
			}
			r, err := bench.Kernels(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Shapes, "shapes", nil, "matrices `MxK` (default 4096x4096)")
	f.StringSliceVar(&o.Packings, "packings", nil, "run-time packings, such as I1,I2,Q4 (default all)")
	f.StringSliceVar(&o.Kernels, "kernels", nil, "kernels, such as avx2:lut (default all that this machine has)")
	f.IntSliceVar(&o.Tokens, "tokens", o.Tokens, "batch sizes N")
	f.IntSliceVar(&o.Threads, "threads", o.Threads, "numbers of threads")
	f.DurationVar(&o.Budget, "budget", o.Budget, "time spent on one row")
	f.BoolVar(&o.Full, "full", false, "more shapes, batch sizes and threads: some minutes")
	f.BoolVar(&o.Chosen, "chosen", false, "compare the kernels in use with each that could be forced")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "rounds of --compare")
	compareFlags(f, &o.PeerOptions)
	return cmd
}
