// Package commands is the command line of lutra-lab: the instruments that measure, plan and
// convert models. What its commands share with lutra's is in internal/cli.
package commands

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"
)

// program is lutra-lab.
var program = cli.Program{
	Name:  "lutra-lab",
	Short: "Measure, plan and convert models for Lutra",
	Long: `The instruments beside lutra: benchmarks of kernels, engines and servers, accuracy against
latency, conversions and quantised files, logits and perplexity, and plans for NPUs.`,
	Example: `  lutra-lab bench kernels
  lutra-lab eval --limit 100 --methods single,best_of_n --n 4
  lutra-lab quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M`,
	Commands: func() []*cobra.Command {
		return []*cobra.Command{newBench(), newEval(), newProbe(), newPerplexity(), newLogits(), newConvert(), newQuantize(), newImatrix(), newNPU(), newSchema(), newDocs()}
	},
	Groups: []cli.Group{
		{Heading: "Measuring:", Names: []string{"bench", "eval", "perplexity", "logits", "schema"}},
		{Heading: "Files:", Names: []string{"convert", "quantize", "imatrix", "probe", "docs"}},
		{Heading: "Hexagon NPUs:", Names: []string{"npu"}},
	},
	Arguments: map[string]cli.Choices{
		"lutra-lab convert":      {Words: cli.StoredNames, Files: true},
		"lutra-lab schema check": {Files: true},
		"lutra-lab quantize":     {Words: cli.ModelNames, Files: true},
	},
}

// Main runs the command line and returns the exit status, as cli.Main does.
func Main(args []string) int { return program.Main(context.Background(), args) }

// Command returns lutra-lab with the commands below it, as cli.Command returns lutra.
func Command(out, errOut io.Writer) *cobra.Command { return program.Command(out, errOut) }
