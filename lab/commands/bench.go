package commands

import (
	"errors"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/bench"
	"github.com/lutra-lm/lutra/models/weights"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure kernels, the engine or a server",
		Example: `  lutra-lab bench kernels --packings I1,I2
  lutra-lab bench engine --shape falcon3-1b
  lutra-lab bench serve --url http://127.0.0.1:8080/v1 --concurrency 32`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchKernels(), newBenchEngine(), newBenchServe(), newBenchAgent(), newBenchGrowth(), newBenchPlan(), newBenchModel())
	return cmd
}

// showReport prints a benchmark's report. An interrupted benchmark may have both a
// report and an error.
func showReport(cmd *cobra.Command, asJSON bool, r bench.Report, err error) error {
	switch {
	case r == nil:
		return err
	case asJSON:
		return errors.Join(output.JSON(cmd.OutOrStdout(), r), err)
	}
	return errors.Join(r.Print(cmd.OutOrStdout()), err)
}

func compareFlags(f *pflag.FlagSet, o *bench.PeerOptions) {
	f.StringArrayVar(&o.Compare, "compare", nil, "another engine to measure alternately with ours: `NAME=COMMAND`, for the shell; may be repeated")
	f.StringVar(&o.Pattern, "compare-pattern", "", "`REGEXP` that finds the (?P<test>) and (?P<value>) of its results, for formats that are not known")
}

func sourceFlags(f *pflag.FlagSet, s *bench.Source) {
	f.StringVar(&s.Model, "model", "", "GGUF `FILE`, or a name as lutra serve takes (default: the embedded model)")
	cli.WordVar(f, &s.Shape, "shape", "", bench.Shapes(), "random model of a known `SHAPE`")
	cli.WordVar(f, &s.Backend, "backend", config.CPU, config.Backends(), "where matrices and attention are computed")
	cli.WordVar(f, &s.Packing, "packing", "auto", weights.Packings(), "run-time packing of ternary weights")
}
