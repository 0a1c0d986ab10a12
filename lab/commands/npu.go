package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/mixtures"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/gguf"
)

func newNPU() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "npu",
		Short: "Plan models for Hexagon NPUs, by a model of their time",
		Example: `  lutra-lab npu plan lutra-tiny-s
  lutra-lab npu calibrate --model mixture.gguf --data train.jsonl --out stats.json
  lutra-lab npu ablate layouts
  lutra-lab npu doctor`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNPUPlan(), newNPUCalibrate(), newNPUPlacements(), newNPURequests(), newNPUPapers(), newNPUDoctor(), newNPUAblate())
	return cmd
}

func newNPUPlan() *cobra.Command {
	o, change := npu.DefaultOptions(), npu.Change{}
	var asJSON bool
	var experts expertPlanning
	model := ""
	tested, layers := "", false
	drawing, route, head := "", string(o.Route), string(npu.HeadAuto)
	cmd := &cobra.Command{
		Use:   "plan [MODEL]",
		Short: "Show tilings, memory, timeline and modelled time of a model on an NPU",
		Long: `Cuts each matrix of a model into tiles, lays them out in TCM, and models the time and
energy of prompts and of decoded batches on four SoCs. Nothing was measured on a device:
what is assumed or fitted to the papers' figures says so, and lutra-lab npu papers how well.
--measured takes constants from the report of a phone's lutra npu selftest.

With --moe the model's mixtures of experts are planned in place of the rest: groups of
experts with static capacities, by what lutra-lab npu calibrate has counted, and which of
them the NPU computes.

MODEL is a GGUF file, an embedded model, one of the catalogue that has been
downloaded, or a shape: ` + strings.Join(npu.Shapes(), ", ") + `.`,
		Example: `  lutra-lab npu plan lutra-tiny-l
  lutra-lab npu plan lutra-tiny-moe --layers
  lutra-lab npu plan bitnet-2b --svg plan.svg
  lutra-lab npu plan bitnet-2b --soc 8gen3 --measured report.json
  lutra-lab npu plan qwen2.5-1.5b --head cpu --soc elite --context 4096
  lutra-lab npu plan llama-3.1-8b --bits 2 --clock 1.2 --cycles-per-packet 1 --json
  lutra-lab npu plan --moe --calibration stats.json --model mixture.gguf`,
		Args: func(cmd *cobra.Command, args []string) error {
			if model != "" && len(args) == 0 {
				return nil
			}
			return cli.Arguments("MODEL")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && model != "" {
				return usage.Errorf("--model: the model is %q already", usage.Brief(args[0]))
			}
			if len(args) > 0 {
				model = args[0]
			}
			if err := experts.check(cmd.Flags()); err != nil {
				return err
			}
			if experts.on {
				experts.Device, experts.Context = o.Chip, o.Context
				return experts.run(cmd.Context(), cmd.OutOrStdout(), model, change.Bits, asJSON)
			}
			x, err := plannedModel(cmd.Context(), model)
			if err != nil {
				return err
			}
			for name, v := range map[string]float64{"clock": o.Clock, "cycles-per-packet": o.CyclesPerPacket} {
				if cmd.Flags().Changed(name) && v == 0 {
					return usage.Errorf("--%s: 0 is out of range", name)
				}
			}
			if o.Measured, err = readSelftest(tested); err != nil {
				return err
			}
			o.Route, change.Head = soc.Route(route), npu.Head(head)
			if err := errors.Join(change.Apply(&x), o.Check()); err != nil {
				return usage.Error{Err: err}
			}
			p, err := npu.NewPlan(x, o)
			if err != nil {
				return err
			}
			if layers {
				if err := loadPlanned(cmd, p, model); err != nil {
					return err
				}
			}
			if err := writeFile(drawing, p.SVG); err != nil {
				return err
			}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), p)
			}
			return p.Print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&tested, "measured", "", "`FILE` of lutra npu selftest, whose times become the constants of --soc")
	f.BoolVar(&layers, "layers", false, "load the model, and say which of its layers the host computes, and why, and what a session maps")
	f.StringVar(&model, "model", "", "the same as MODEL")
	cli.WordVar(f, &o.Chip, "soc", o.Chip, planDevices(soc.IDs()), "`SOC` whose tilings, memory and timeline are shown; m2-max and m2-ultra are for --moe")
	cli.WordVar(f, &route, "route", route, soc.Routes(), "`HOW` weights come from DDR")
	cli.WordVar(f, &head, "head", head, npu.Heads(), "`WHERE` logits are computed; auto is the CPU if the device does not hold the matrix exactly")
	f.IntVar(&change.Bits, "bits", 0, "store the layers' weights in 1, 2 or 4 `BITS`, in groups of 64 (default: as the model is)")
	f.Float64Var(&o.Clock, "clock", 0, "`GHZ` of the vector threads (default: fitted)")
	f.Float64Var(&o.CyclesPerPacket, "cycles-per-packet", 0, "`CYCLES` of a packet of vector code (default: assumed)")
	f.IntVar(&o.Prompt, "prompt", o.Prompt, "`TOKENS` of the prompt")
	f.IntVar(&o.Context, "context", o.Context, "`TOKENS` before those that are decoded")
	f.StringVar(&drawing, "svg", "", "`FILE` for a drawing of the timeline and of throughput by batch")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	experts.flags(f)
	return cmd
}

// readSelftest reads the report of a self-test; an empty path is none.
func readSelftest(path string) (*selftest.Report, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := npu.ReadSelftest(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// loadPlanned loads a model on the device in Go for its plan.
func loadPlanned(cmd *cobra.Command, p *npu.Plan, model string) error {
	if _, ok := npu.Shape(model); ok {
		return usage.Errorf("--layers: %s is a shape, which has no layers to load", model)
	}
	shown := cli.Loading{W: cmd.ErrOrStderr()}
	defer shown.End()
	o := npu.DefaultRequestsOptions()
	o.Model, o.Get, o.Loading = model, cli.FromHub(cmd), shown.Show
	return p.Load(cmd.Context(), o)
}

// plannedModel returns a shape by its name, or a model that is on this machine.
func plannedModel(ctx context.Context, name string) (soc.Model, error) {
	if x, ok := npu.Shape(name); ok {
		return x, nil
	}
	f, err := openPlanned(ctx, name)
	if err != nil {
		return soc.Model{}, err
	}
	defer f.Close()
	return npu.FromFile(name, f)
}

// openPlanned opens a model that is on this machine.
func openPlanned(ctx context.Context, name string) (*gguf.File, error) {
	f, err := cli.OpenStored(ctx, name)
	if _, stat := os.Stat(name); err != nil && stat != nil && !errors.Is(err, hub.ErrAbsent) {
		err = fmt.Errorf("%w; a shape is one of %s", err, strings.Join(npu.Shapes(), ", "))
	}
	return f, err
}

func newNPUDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what of the NPU's path this machine has",
		Long: `Looks for the emulator and the compiler of the NPU's kernels, and for what a phone
has: libcdsprpc.so, the FastRPC device, the skel library. It opens no session.`,
		Example: `  lutra-lab npu doctor`,
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := npu.Examine(cmd.Context())
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			return npu.PrintFindings(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newNPUPapers() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "Show what the papers measured beside what is modelled",
		Long: `Lists every figure that the texts of T-MAN, of the test-time scaling paper and of NPUMoE have
of an NPU's time and energy, beside the model's. Figures that constants were fitted to say
so; all others are held out.`,
		Example: `  lutra-lab npu papers
  lutra-lab npu papers --json`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := npu.Figures()
			if err != nil {
				return err
			}
			more, err := mixtures.Figures()
			if err != nil {
				return err
			}
			list = append(list, more...)
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			return npu.PrintFigures(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newNPUAblate() *cobra.Command {
	var asJSON, rerun bool
	cmd := &cobra.Command{
		Use:   "ablate",
		Short: "Compare techniques as the papers do, by counted packets and the model",
		Long: `Each Subcommand makes a comparison of the papers again with this project's kernels. Counts
are recorded ones; --rerun counts again under qemu-hexagon.`,
		Example: `  lutra-lab npu ablate lookups`,
		Args:    cli.Subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	for _, name := range npu.Ablations() {
		sub := &cobra.Command{
			Use: name, Short: npu.AblationTitle(name), Example: "  lutra-lab npu ablate " + name, Args: cli.Arguments(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				counts := ablation.Recorded()
				if rerun {
					var err error
					if counts, _, err = ablation.Run(cmd.Context()); err != nil {
						return err
					}
				}
				a, err := npu.Ablate(name, counts)
				if err != nil {
					return err
				}
				if asJSON {
					return output.JSON(cmd.OutOrStdout(), a)
				}
				return a.Print(cmd.OutOrStdout())
			},
		}
		sub.Flags().BoolVar(&rerun, "rerun", false, "count packets again under qemu-hexagon")
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(newNPUAccuracy(&asJSON))
	return cmd
}

func newNPUAccuracy(asJSON *bool) *cobra.Command {
	model, limit := "lutra-tiny-l", 100
	cmd := &cobra.Command{
		Use:   "accuracy",
		Short: "Weights of few bits: per block and per channel, tile groups (both papers, Table 4)",
		Long: `Rounds the weights of an embedded model to what the device stores, and computes the
perplexity of right solutions and how many greedy answers are right. The matrices are
rotated first: the models are ternary, and would lose nothing otherwise.`,
		Example: `  lutra-lab npu ablate accuracy --model lutra-tiny-s --limit 100`,
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage.Errorf("--limit: %d is not positive", limit)
			}
			meter := &output.Meter{W: cmd.ErrOrStderr(), What: "storages"}
			defer meter.End()
			a, err := npu.Accuracy(cmd.Context(), model, limit, meter.Count(0, npu.Storages()))
			meter.End()
			if err != nil {
				return err
			}
			if *asJSON {
				return output.JSON(cmd.OutOrStdout(), a)
			}
			return a.Print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	cli.WordVar(f, &model, "model", model, []string{"lutra-tiny-s", "lutra-tiny-l"}, "embedded `MODEL`")
	f.IntVar(&limit, "limit", limit, "first `PROBLEMS` of the test set")
	return cmd
}
