package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/npu"
)

func newNPURequests() *cobra.Command {
	o, asJSON := npu.DefaultRequestsOptions(), false
	cmd := &cobra.Command{
		Use:   "requests MODEL",
		Short: "Count what a prompt and a token ask of an NPU",
		Long: `Runs a prompt and a token behind it on the device in Go, and counts requests to the device,
packets in them, and the bytes that the host writes and reads: those of a phone would be the
same. Nothing is timed. MODEL is what lutra serve takes as --model.

--round is hexagon.round: q8_0 has the device hold Q6_K and Q5_K matrices, of which Q4_K_M
files have many, in eight bits.`,
		Example: `  lutra-lab npu requests lutra-tiny-s
  lutra-lab npu requests lutra-tiny-moe --round q8_0 --prompt 128 --json`,
		Args: cli.Arguments("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			o.Model, o.Get, o.Loading = args[0], cli.FromHub(cmd), shown.Show
			r, err := npu.Requests(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), r)
			}
			return r.Print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Prompt, "prompt", o.Prompt, "`TOKENS` of the prompt")
	cli.WordVar(f, &o.Hexagon.Path, "path", o.Hexagon.Path, hexagon.Paths(), "`HOW` matrices are multiplied")
	cli.WordVar(f, &o.Hexagon.Round, "round", o.Hexagon.Round, hexagon.Roundings(), "what becomes of `WEIGHTS` that the device does not hold exactly")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
