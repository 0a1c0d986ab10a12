package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the headings under which the help of commands with many flags lists them. Flags
// without a group come first, as the command's own.
var flagGroups = []struct {
	heading string
	names   []string
}{
	{"Models", []string{"config", "draft-model", "lora", "model", "models-dir", "offline", "packing", "verifier", "vocabulary"}},
	{"Memory and compute", []string{"expert-mem", "context", "kv-disk", "kv-mem", "kv-type", "model-mem", "rope-scale", "rope-scaling", "speculation", "threads", "yarn-orig-ctx"}},
	{"Hexagon NPUs", []string{"backend", "npu-plan", "placement", "soc"}},
	{"A server to ask", []string{"url", "api-key"}},
	{"Keys and certificates", []string{"api-key", "api-keys-file", "tls-cert", "tls-key"}},
	{"Sampling", []string{"max-tokens", "seed", "system", "temperature", "thinking", "top-p"}},
}

// manyFlags is the number from which on flags are grouped.
const manyFlags = 16

// flagUsages lists a command's flags, in groups if they are many.
func flagUsages(cmd *cobra.Command) string {
	all := cmd.LocalFlags()
	shown := 0
	all.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			shown++
		}
	})
	if shown < manyFlags {
		return "Flags:\n" + all.FlagUsages()
	}
	taken := map[string]bool{}
	var groups strings.Builder
	for _, g := range flagGroups {
		set := pflag.NewFlagSet(g.heading, pflag.ContinueOnError)
		all.VisitAll(func(f *pflag.Flag) {
			if slices.Contains(g.names, f.Name) && !taken[f.Name] && (g.heading != "A server to ask" || all.Lookup("url") != nil) {
				set.AddFlag(f)
				taken[f.Name] = true
			}
		})
		if set.HasAvailableFlags() {
			groups.WriteString("\n" + g.heading + ":\n" + set.FlagUsages())
		}
	}
	own := pflag.NewFlagSet("own", pflag.ContinueOnError)
	all.VisitAll(func(f *pflag.Flag) {
		if !taken[f.Name] {
			own.AddFlag(f)
		}
	})
	return "Flags:\n" + own.FlagUsages() + groups.String()
}

// Group is a heading of --help, and the commands under it.
type Group struct {
	Heading string
	Names   []string
}

// commandGroups are the headings of lutra --help.
var commandGroups = []Group{
	{"Serving and asking:", []string{"serve", "ask", "chat", "run"}},
	{"A running server:", []string{"ps", "stop", "logs", "health", "key", "replay", "cache"}},
	{"Models:", []string{"pull", "list", "rm", "info"}},
	{"This machine:", []string{"doctor", "npu"}},
}

// groupHelp gives commands and flags their headings.
func groupHelp(root *cobra.Command, groups []Group) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Heading, Title: g.Heading})
		for _, c := range root.Commands() {
			if slices.Contains(g.Names, c.Name()) {
				c.GroupID = g.Heading
			}
		}
	}
	cobra.AddTemplateFunc("lutraFlags", flagUsages)
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{lutraFlags . | trimTrailingWhitespaces}}", 1))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print a script that completes commands in a shell"
			c.Long = "Prints a script for a shell, which then completes commands, flags and their values. The help of\neach shell's command says where its script belongs."
			for _, shell := range c.Commands() {
				shell.Example = "  " + shell.CommandPath()
			}
		}
	}
}
