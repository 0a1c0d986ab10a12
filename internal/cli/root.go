package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/usage"
)

// Program is a command line: lutra, and in the module lab lutra-lab, which has the instruments.
type Program struct {
	Name, Short, Long, Example string
	Commands                   func() []*cobra.Command
	Groups                     []Group
	Arguments                  map[string]Choices // what a shell offers, by the path of a command
}

// program is lutra, which serves models and asks them.
var program = Program{
	Name:  "lutra",
	Short: "Serve ultra-low-bit language models on ordinary CPUs",
	Long: `Lutra serves ternary (1.58-bit) and other low-bit language models on ordinary
CPUs behind an OpenAI-compatible HTTP API. With no model named, it uses the small
reasoner inside the binary.`,
	Example: `  lutra serve                                    # embedded model on 127.0.0.1:8080
  lutra serve --model falcon3-1b-tq2_0.gguf      # your own GGUF file
  lutra serve --model bonsai-1.7b                # one that is downloaded first
  lutra ask "A box holds 12 eggs. How many are in 7 boxes?"`,
	Commands: func() []*cobra.Command {
		list := []*cobra.Command{newServe(), newAsk(), newChat(), newRun(), newPs(), newStop(), newLogs(), newPull(), newList(), newRemove(), newInfo(), newReplay(), newDoctor(), newNPU(), newHealth(), newKey(), newCache()}
		for _, name := range movedCommands {
			list = append(list, newMoved(name))
		}
		return list
	},
	Groups:    commandGroups,
	Arguments: argumentChoices,
}

// Main runs the command line and returns the exit status: 0 success, 1 failure,
// 2 wrong usage, 130, 143 or 129 ended by SIGINT, SIGTERM or SIGHUP. The
// documents are the repository's.
func Main(args []string, documents fs.FS) int {
	return program.Main(withDocuments(context.Background(), documents), asServed(args))
}

// Main runs a program's command line, as the function Main does.
func (p *Program) Main(ctx context.Context, args []string) int {
	ctx, stop := untilSignal(ctx)
	defer stop()
	keepChoices()
	findNameservers()
	return underManager(ctx, os.Stderr, func(errOut io.Writer) int { return p.run(ctx, args, errOut) })
}

// run runs a command until it or ctx ends, and returns the exit status.
func (p *Program) run(ctx context.Context, args []string, errOut io.Writer) int {
	root := p.Command(os.Stdout, errOut)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		by := stopSignal{os.Interrupt} // chat handles signals itself
		errors.As(context.Cause(ctx), &by)
		return by.status()
	}
	return Report(errOut, cmd.CommandPath(), err)
}

// Report prints the error of a command, one fault a line, and returns the exit status.
func Report(w io.Writer, command string, err error) int {
	var ends exitStatus
	if errors.As(err, &ends) && ends.cause == nil {
		return ends.status
	}
	for line := range strings.Lines(errtext.Text(err)) {
		fmt.Fprintf(w, "%s: %s\n", command, strings.TrimSuffix(line, "\n"))
	}
	var mistake usage.Error
	if !errors.As(err, &mistake) {
		return max(1, ends.status)
	}
	fmt.Fprintf(w, "Run '%s --help' for usage.\n", command)
	return 2
}

// Command returns lutra with the commands below it, which print to out and, what is no result,
// to errOut: for Main, and for tests of what documents say of them.
func Command(out, errOut io.Writer) *cobra.Command { return program.Command(out, errOut) }

// Command returns the program with the commands below it, as the function Command does.
func (p *Program) Command(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           p.Name,
		Short:         p.Short,
		Long:          p.Long,
		Example:       p.Example,
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          Subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(flagError)
	root.SetGlobalNormalizationFunc(currentName)
	root.SetHelpCommand(newHelp())
	root.SetVersionTemplate(versionLine(p.Name))
	root.AddCommand(append(p.Commands(), newVersion())...)
	groupHelp(root, p.Groups)
	offerChoices(root, p.Arguments)
	return root
}

// newHelp shows the help of a command as --help does.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return Choices{Words: func() []string { return commandNames(helped(cmd, args)) }}.Complete(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c := helped(cmd, args)
			if depth := len(strings.Fields(c.CommandPath())) - 1; depth < len(args) {
				return Subcommand(c, args[depth:])
			}
			return c.Help()
		},
	}
}

// helped returns the command that args name, or the last of them that is one.
func helped(cmd *cobra.Command, args []string) *cobra.Command {
	c := cmd.Root()
	for _, name := range args {
		i := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
		if i < 0 {
			break
		}
		c = c.Commands()[i]
	}
	return c
}

// commandNames lists the subcommands of cmd that help lists.
func commandNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

type documentsKey struct{}

// withDocuments gives commands the repository's documents.
func withDocuments(ctx context.Context, documents fs.FS) context.Context {
	return context.WithValue(ctx, documentsKey{}, documents)
}

// documentsOf returns the repository's documents; nil: there are none, as in tests.
func documentsOf(ctx context.Context) fs.FS {
	documents, _ := ctx.Value(documentsKey{}).(fs.FS)
	return documents
}
