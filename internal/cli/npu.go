package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/output"
)

// errDistrusted ends the self-test of an NPU that failed; the report says why.
var errDistrusted = errors.New("the NPU failed: see the verdict")

// newNPU has one command of its own; the planning of models for NPUs is lutra-lab's.
func newNPU() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "npu",
		Short: "Test this phone's Hexagon NPU",
		Long: `Tests a Hexagon NPU before a model is trusted to it. Plans of models, their modelled times and
ablations are lutra-lab npu.`,
		Example: `  lutra npu selftest -o report.json`,
		Args:    Subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNPUSelftest())
	for _, name := range movedNPU {
		cmd.AddCommand(newMoved("npu " + name))
	}
	return cmd
}

func newNPUSelftest() *cobra.Command {
	o, file, asJSON := selftest.Options{Backend: hexagon.Chip, Lutra: Version()}, "", false
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Test the NPU call by call and operation by operation, and measure it",
		Long: `Opens the NPU call by call, has host and NPU write to one another, runs each operation alone
and compares it with its definition, bit for bit, and measures copies, products, gathers and the
products of a layer of BitNet-2B. It needs no model, and a minute or two on a phone.

With -o each part is written to the report before it runs: should the program or the phone go down,
the report names the part. The status is 1 if the NPU failed. lutra-lab npu plan --measured reads
the report.

hexagon-go and hexagon-qemu are emulations: with them the program tests itself.`,
		Example: `  lutra npu selftest -o report.json
  lutra npu selftest --backend hexagon-go`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := runSelftest(cmd, o, file)
			if r == nil {
				return err
			}
			if asJSON {
				err = errors.Join(err, output.JSON(cmd.OutOrStdout(), r))
			} else {
				err = errors.Join(err, r.Print(cmd.OutOrStdout()))
			}
			if err == nil && !r.Verdict.OK {
				err = errDistrusted
			}
			return err
		},
	}
	f := cmd.Flags()
	WordVar(f, &o.Backend, "backend", o.Backend, hexagon.Kinds(), "`DEVICE` that is tested")
	f.StringVarP(&file, "output", "o", "", "`FILE` for the report, in JSON")
	f.BoolVar(&o.Quick, "quick", false, "measure nothing")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// runSelftest runs the test, and saves its report to a file if there is one.
func runSelftest(cmd *cobra.Command, o selftest.Options, file string) (*selftest.Report, error) {
	o.Chip, o.Try = o.Backend == hexagon.Chip, hexagon.Try
	o.Open = func(bytes int, step func(string)) (device.Device, error) {
		return hexagon.OpenDevice(o.Backend, bytes, hexagon.Options{Timeout: selftest.DefaultTimeout}, step)
	}
	o.Log = func(part string) { fmt.Fprintln(cmd.ErrOrStderr(), part) }
	if file != "" {
		o.Save = func(r *selftest.Report) error { return saveReport(file, r) }
	}
	return selftest.Run(cmd.Context(), o)
}

// saveReport puts a report in a file's place, so that a crash leaves it or the one before it.
func saveReport(file string, r *selftest.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".lutra-selftest-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}
