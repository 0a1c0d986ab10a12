package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/mixtures"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

func newNPUCalibrate() *cobra.Command {
	c := mixtures.Calibrating{Chunks: mixtures.Chunks()}
	out, svg, asJSON := "", "", false
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Count which experts a mixture's routers choose",
		Long: `Computes prompts on the CPU and counts, by layer and expert, the tokens that choose
each expert, and how many rows chunks of prompts give it. Of a file named .jsonl, prompts
are its questions, as lutra-lab eval reads them; of any other, the text in pieces of --context.
With several data sets, the first is compared with each other one.`,
		Example: `  lutra-lab npu calibrate --model mixture.gguf --data train.jsonl --out stats.json
  lutra-lab npu calibrate --model mixture.gguf --data train.txt --data test.txt --svg loads.svg`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Model == "" {
				return usage.Errorf("--model is required")
			}
			if c.ContextSet = cmd.Flags().Changed("context"); c.Context < 1 {
				return usage.Errorf("--context: %d is not positive", c.Context)
			}
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			c.Packing, c.Get, c.Loading = "auto", cli.FromHub(cmd), shown.Show
			cal, err := mixtures.Calibrate(cmd.Context(), c, promptProgress(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			for _, f := range []struct {
				path  string
				write func(io.Writer) error
			}{
				{out, func(w io.Writer) error { return output.Line(w, cal) }},
				{svg, func(w io.Writer) error { return mixtures.SVG(w, cal) }},
			} {
				if err := writeFile(f.path, f.write); err != nil {
					return err
				}
			}
			if asJSON {
				return output.Line(cmd.OutOrStdout(), cal)
			}
			return mixtures.PrintCalibration(cmd.OutOrStdout(), cal)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Model, "model", "", "GGUF `FILE` with experts, or a name that lutra serve takes")
	f.StringArrayVar(&c.Data, "data", nil, "`FILE` of prompts: .jsonl or text; again for each further data set")
	f.IntSliceVar(&c.Chunks, "chunk", c.Chunks, "`TOKENS` of chunks, separated by commas")
	f.IntVar(&c.Limit, "limit", 0, "first `PROMPTS` of each file (default: all)")
	f.IntVar(&c.Context, "context", 4096, "longest prompt in `TOKENS`")
	f.IntVar(&c.Threads, "threads", 0, "compute threads (default: one a physical core)")
	f.StringVar(&out, "out", "", "`FILE` for the calibration, which lutra-lab npu plan reads")
	f.StringVar(&svg, "svg", "", "`FILE` for a drawing of loads and imbalance")
	f.BoolVar(&asJSON, "json", false, "print the calibration as JSON")
	return cmd
}

// promptProgress shows how far each data set is.
func promptProgress(w io.Writer) func(set string, done, of int) {
	var meter output.Meter
	return func(set string, done, of int) {
		if done == 1 {
			meter = output.Meter{W: w, What: set}
		}
		if meter.Set(int64(done), int64(of)); done == of {
			meter.End()
		}
	}
}

// writeFile has write make the file at path; an empty path is none.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// expertPlanning are the flags of lutra-lab npu plan that plan mixtures.
type expertPlanning struct {
	on          bool
	calibration string
	mixtures.Planning
}

// expertFlags mean nothing without --moe.
var expertFlags = []string{"calibration", "chunk", "group", "capacity", "headroom", "ratio", "launch", "most-overflow"}

// denseFlags mean nothing with it.
var denseFlags = []string{"measured", "layers", "route", "head", "clock", "cycles-per-packet", "prompt", "svg"}

func (e *expertPlanning) flags(f *pflag.FlagSet) {
	e.Planning = mixtures.DefaultPlanning()
	f.BoolVar(&e.on, "moe", false, "plan the model's mixtures of experts")
	f.StringVar(&e.calibration, "calibration", "", "with --moe: `FILE` of lutra-lab npu calibrate")
	f.IntVar(&e.Chunk, "chunk", 0, "with --moe: `TOKENS` of a chunk (default: the best of the calibration's)")
	f.IntVar(&e.GroupSize, "group", 0, "with --moe: `EXPERTS` of a group (default: the best of 4, 8 and 16)")
	f.IntVar(&e.Capacity, "capacity", 0, "with --moe: `ROWS` of every expert in place of tiers")
	f.Float64Var(&e.Headroom, "headroom", 0, "with --moe: multiply what tiers have room for by `FACTOR`")
	f.Float64Var(&e.Ratio, "ratio", 0, "with --moe: `IMBALANCE` of every layer (default: the calibration's)")
	f.Float64Var(&e.Launch, "launch", 0, "with --moe: `MS` that a launch takes (default: the device's)")
	f.Float64Var(&e.MostOverflow, "most-overflow", e.MostOverflow, "with --moe: `SHARE` of rows that may overflow")
}

// check reports flags that do not belong together.
func (e *expertPlanning) check(f *pflag.FlagSet) error {
	list, when := expertFlags, "is for --moe"
	if e.on {
		list, when = denseFlags, "is not for --moe"
	}
	for _, name := range list {
		if f.Changed(name) {
			return usage.Errorf("--%s %s", name, when)
		}
	}
	for _, name := range []string{"chunk", "group", "capacity", "headroom", "ratio", "launch"} {
		if flag := f.Lookup(name); flag.Changed && (strings.HasPrefix(flag.Value.String(), "-") || flag.Value.String() == "0") {
			return usage.Errorf("--%s: %s is not positive", name, flag.Value)
		}
	}
	return nil
}

// run plans and prints.
func (e *expertPlanning) run(ctx context.Context, w io.Writer, model string, bits int, asJSON bool) error {
	m, err := plannedMixture(ctx, model)
	if err != nil {
		return err
	}
	if err := m.Store(bits); err != nil {
		return usage.Error{Err: err}
	}
	var c *calibration.Calibration
	if e.calibration != "" {
		if c, err = calibration.Open(e.calibration); err != nil {
			return err
		}
	}
	p, err := mixtures.NewPlan(m, c, e.Planning)
	switch {
	case errors.Is(err, experts.ErrOptions):
		return usage.Error{Err: err}
	case err != nil:
		return err
	case asJSON:
		return output.JSON(w, p)
	}
	return mixtures.PrintPlan(w, p)
}

// plannedMixture returns the mixture of a shape by its name, or of a model on this machine.
func plannedMixture(ctx context.Context, name string) (*npu.Mixture, error) {
	if m, ok := npu.ShapeMixture(name); ok {
		return m, nil
	}
	if _, ok := npu.Shape(name); ok {
		return nil, fmt.Errorf("%s has no mixtures of experts", name)
	}
	f, err := openPlanned(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return npu.FileMixture(cmp.Or(config.ModelNamed(name).APIName(), name), f)
}

// planDevices lists what --soc takes: chips, and with --moe the Neural Engines too.
func planDevices(chips []string) []string {
	list := slices.Clone(chips)
	for _, d := range planning.Devices() {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}
