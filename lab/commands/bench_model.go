package commands

import (
	"fmt"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchModel() *cobra.Command {
	o, out := bench.DefaultModelOptions(), ""
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Write a GGUF file of random weights, for measuring any engine",
		Long: `Writes a model of a known shape with random weights. The same seed
gives the same bytes everywhere, so engines can be compared without a download. Speed
does not depend on the values of weights.`,
		Example: `  lutra-lab bench model --shape falcon3-1b --out falcon3-1b-tq2_0.gguf
  lutra-lab bench model --shape bitnet-2b --type Q4_0 --head Q6_K --out bitnet-2b-q4_0.gguf
  lutra-lab bench model --shape qwen3-30b-a3b --layers 8 --type Q4_K --finer Q6_K --out qwen3-8-layers-q4_k_m.gguf
  lutra-lab bench model --shape gpt-oss-20b --layers 4 --type MXFP4 --head Q8_0 --out gpt-oss-4-layers.gguf`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			size, err := bench.WriteModel(cmd.Context(), out, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", out, output.Bytes(size))
			return err
		},
	}
	f := cmd.Flags()
	cli.WordVar(f, &o.Shape, "shape", o.Shape, bench.Shapes(), "`SHAPE` of the model")
	f.IntVar(&o.Layers, "layers", 0, "`number` of layers (default: the shape's)")
	f.StringVar(&o.Blocks, "type", o.Blocks, "storage `type` of the layers' matrices")
	f.StringVar(&o.Finer, "finer", "", "storage `type` of attn_v and ffn_down in the layers to which Q4_K_M gives more bits (default: --type)")
	f.StringVar(&o.Head, "head", o.Head, "storage `type` of embedding and output matrix")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the weights")
	f.StringVarP(&out, "out", "o", "", "`FILE` to write")
	return cmd
}
