package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/usage"
)

// Main runs the command line and returns the exit status: 0 success, 1 failure,
// 2 wrong usage, 130, 143 or 129 ended by SIGINT, SIGTERM or SIGHUP.
func Main(args []string) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := newRoot(os.Stdout, os.Stderr)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		by := stopSignal{os.Interrupt} // that of chat, which handles signals itself
		errors.As(context.Cause(ctx), &by)
		return by.status()
	}
	return report(os.Stderr, cmd.CommandPath(), err)
}

// report prints the error of a command, one fault a line, and returns the exit status.
func report(w io.Writer, command string, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "%s: %s\n", command, strings.TrimSuffix(line, "\n"))
	}
	var mistake usage.Error
	if !errors.As(err, &mistake) {
		return 1
	}
	fmt.Fprintf(w, "Run '%s --help' for usage.\n", command)
	return 2
}

func newRoot(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "lutra",
		Short: "Serve ultra-low-bit language models on ordinary CPUs",
		Long: `Lutra serves ternary (1.58-bit) and other low-bit language models on ordinary
CPUs behind an OpenAI-compatible HTTP API. With no model named, it uses the small
reasoner inside the binary.`,
		Example: `  lutra serve                                    # embedded model on 127.0.0.1:8080
  lutra serve --model falcon3-1b-tq2_0.gguf      # your own GGUF file
  lutra serve --model bonsai-1.7b                # one that is downloaded first
  lutra ask "A box holds 12 eggs. How many are in 7 boxes?"
  lutra bench kernels`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newServe(), newAsk(), newChat(), newPull(), newList(), newRemove(), newInfo(), newBench(), newLogits(), newPerplexity(), newEval(), newNPU(), newSchema(), newHealth(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Example: "  lutra version",
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "lutra", version())
			return err
		},
	}
}

// newHelp shows the help of a command as --help does.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := cmd.Root()
			for _, name := range args {
				i := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
				if i < 0 {
					return subcommand(c, []string{name})
				}
				c = c.Commands()[i]
			}
			return c.Help()
		},
	}
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
