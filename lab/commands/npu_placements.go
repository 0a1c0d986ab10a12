package commands

import (
	"errors"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/mixtures"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

func newNPUPlacements() *cobra.Command {
	o := mixtures.DefaultPlacementOptions()
	var asJSON bool
	counted, drawing := "", ""
	cmd := &cobra.Command{
		Use:   "placements MODEL",
		Short: "Model time and energy of a mixture's prompts, by what the NPU computes",
		Long: `Models the time to the first token, energy and CPU cycles of a mixture of experts under the
four placements of NPUMoE (Table 2): all on the CPU, experts on the NPU without a plan,
attention alone on the NPU, and all of both, experts as a plan says. All of it is
modelled; lutra-lab npu papers sets it beside the paper's figures.

MODEL is one that ` + "`lutra-lab npu plan --moe`" + ` takes. Without --calibration routing is assumed:
the popularity of experts falls evenly from --ratio times the mean.`,
		Example: `  lutra-lab npu placements phi-3.5-moe
  lutra-lab npu placements phi-3.5-moe --svg placements.svg
  lutra-lab npu placements qwen3-30b-a3b --soc 8gen3 --prompt 1024 --chunk 256 --json`,
		Args: cli.Arguments("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := plannedMixture(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var c *calibration.Calibration
			if counted != "" {
				if c, err = calibration.Open(counted); err != nil {
					return err
				}
				if !cmd.Flags().Changed("chunk") {
					o.Chunks = c.Sets[0].Sizes()
				}
			}
			if err := o.Check(); err != nil {
				return usage.Error{Err: err}
			}
			r, err := mixtures.Place(x, c, o)
			switch {
			case errors.Is(err, experts.ErrOptions):
				return usage.Error{Err: err}
			case err != nil:
				return err
			}
			if err := writeFile(drawing, r.SVG); err != nil {
				return err
			}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), r)
			}
			return r.Print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	cli.WordVar(f, &o.Machine, "soc", o.Machine, planning.Devices(), "`MACHINE` that is modelled")
	f.IntSliceVar(&o.Prompts, "prompt", o.Prompts, "`TOKENS` of the prompt, as a list")
	f.IntSliceVar(&o.Chunks, "chunk", o.Chunks, "`TOKENS` that a step computes, as a list")
	f.Float64Var(&o.Ratio, "ratio", o.Ratio, "imbalance `R` of the assumed routing: the most popular expert's tokens by the mean")
	f.Float64Var(&o.MostOverflow, "most-overflow", o.MostOverflow, "`SHARE` of rows that may overflow; the paper drops up to 0.22")
	f.StringVar(&counted, "calibration", "", "`FILE` of lutra-lab npu calibrate: what routers chose")
	f.StringVar(&drawing, "svg", "", "`FILE` for a drawing of times, and of time against energy")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
