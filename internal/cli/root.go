package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit status: 0 success, 1 failure,
// 2 wrong usage, 130 interrupted.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := newRoot(os.Stdout, os.Stderr)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 130
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "lutra: %v\nRun 'lutra --help' for usage.\n", err)
		return 2
	}
	fmt.Fprintf(os.Stderr, "lutra: %v\n", err)
	return 1
}

// usageError marks a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func newRoot(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "lutra",
		Short: "Serve ultra-low-bit language models on ordinary CPUs",
		Long: `Lutra serves ternary (1.58-bit) and other low-bit language models on ordinary
CPUs behind an OpenAI-compatible HTTP API. With no model named, it uses the small
reasoner inside the binary.`,
		Example: `  lutra serve                                    # embedded model on 127.0.0.1:8080
  lutra serve --model falcon3-1b-tq2_0.gguf      # your own GGUF file
  lutra ask "A box holds 12 eggs. How many are in 7 boxes?"
  lutra bench kernels`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newAsk(), newChat(), newInfo(), newBench(), newLogits(), newPerplexity(), newEval(), newHealth())
	return root
}

// version is the module version or VCS revision the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(12, len(s.Value))]
		}
	}
	return v + " " + info.GoVersion
}

// exactArgs is cobra.ExactArgs with a usage error that names the arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s wants %d argument(s): %v", cmd.CommandPath(), len(names), names)
		}
		return nil
	}
}
