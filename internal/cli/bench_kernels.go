package cli

import "github.com/spf13/cobra"

func newBenchKernels() *cobra.Command { return &cobra.Command{Use: "kernels"} }
