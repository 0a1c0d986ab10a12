package cli

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure kernels, the engine or a server",
		Example: `  lutra bench kernels --packings I1,I2
  lutra bench engine --shape falcon3-1b
  lutra bench serve --url http://127.0.0.1:8080/v1 --concurrency 32`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchKernels(), newBenchEngine(), newBenchServe(), newBenchGrowth(), newBenchModel())
	return cmd
}
