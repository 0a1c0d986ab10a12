package cli

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Choices are the values that a shell offers, and whether file names may follow.
type Choices struct {
	Words  func() []string
	Files  bool
	List   bool   // several, separated by commas
	served served // models of a server are offered too
}

// served says whose models are offered.
type served uint8

const (
	ofNone   served = iota
	ofNamed         // of the server that --url or LUTRA_URL names, and then no others
	ofServer        // likewise, else of the one that lutra serve starts with this environment
)

// flagChoices completes flags that do not list their words themselves.
var flagChoices = map[string]Choices{
	"model":       {Words: ModelNames, Files: true, served: ofNamed},
	"draft-model": {Words: ModelNames, Files: true},
	"vocabulary":  {Words: ModelNames, Files: true},
	"verifier":    {Words: verifierNames, Files: true},
	"lora":        {Files: true},
	"scaling":     {Words: plans},
	"backend":     {Words: config.Backends},
	"kv-type":     {Words: config.KVTypes},
	"log":         {Words: config.LogLevels},
	"speculation": {Words: func() []string { return []string{"auto", "off"} }},
	"placement":   {Words: hexagon.Placements},
}

// ServerChoices offers no model of this machine where a server's is meant.
func ServerChoices(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc("model", Choices{Words: func() []string { return []string{apiclient.DefaultModel} }, served: ofNamed}.Complete); err != nil {
		panic(err) // the flag is the command's
	}
}

// argumentChoices completes the arguments of lutra's commands; other arguments are no files.
var argumentChoices = map[string]Choices{
	"lutra info":  {Words: ModelNames, Files: true},
	"lutra pull":  {Words: hub.Names},
	"lutra rm":    {Words: StoredNames},
	"lutra run":   {Words: ModelNames, Files: true, served: ofServer},
	"lutra serve": {Words: ModelNames, Files: true},
	"lutra stop":  {Words: func() []string { return []string{"all"} }, served: ofServer},
}

// offerChoices has the shell complete values of flags, and of arguments by the path of their command.
func offerChoices(cmd *cobra.Command, arguments map[string]Choices) {
	for _, sub := range cmd.Commands() {
		offerChoices(sub, arguments)
	}
	if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = arguments[cmd.CommandPath()].Complete
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		c, known := flagChoices[f.Name]
		if w, ok := f.Value.(interface{ Choices() []string }); ok {
			c, known = Choices{Words: w.Choices}, true
		}
		if name, _ := pflag.UnquoteUsage(f); !known && (name == "FILE" || name == "DIR") {
			return
		}
		if _, own := cmd.GetFlagCompletionFunc(f.Name); own || f.Value.Type() == "bool" {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, c.Complete); err != nil {
			panic(err) // the flag is the command's
		}
	})
}

// Complete implements cobra.CompletionFunc.
func (c Choices) Complete(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if c.served != ofNone {
		c = c.with(servedNames(cmd, c.served))
	}
	before := ""
	if at := strings.LastIndexByte(begun, ','); c.List && at >= 0 {
		before = begun[:at+1]
	}
	var list []string
	if c.Words != nil {
		for _, w := range c.Words() {
			if strings.HasPrefix(before+w, begun) {
				list = append(list, before+w)
			}
		}
	}
	if c.Files {
		return list, cobra.ShellCompDirectiveDefault
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// with offers a server's models, and nothing else if the server was named.
func (c Choices) with(names []string, named bool) Choices {
	words := c.Words
	if named && c.Files {
		return Choices{Words: func() []string { return names }}
	}
	c.Words = func() []string { return appendNew(words(), names) }
	return c
}

// servedNames asks a server for its models, and tells whether somebody has named the server. A
// user who completes a line does not want to hear why there are none.
func servedNames(cmd *cobra.Command, which served) (names []string, named bool) {
	flags := ServerFlags{URL: os.Getenv(urlVariable), Key: os.Getenv(keyVariable)}
	if f := cmd.Flags().Lookup("url"); f != nil && f.Changed {
		flags.URL = f.Value.String()
	}
	if f := cmd.Flags().Lookup("api-key"); f != nil && f.Changed {
		flags.Key = f.Value.String()
	}
	named = flags.URL != ""
	if !named && which == ofNamed {
		return nil, false
	}
	if !named {
		cfg, err := config.Load("", os.Environ(), nil)
		if err != nil {
			return nil, false
		}
		if flags.URL, err = ownURL(cfg.Server); err != nil {
			return nil, false
		}
	}
	client, err := apiclient.New(flags.URL, flags.Key)
	if err != nil {
		return nil, named
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	list, _ := client.List(ctx)
	return list.Names, named
}

// ModelNames returns the names of models that are embedded, in the catalogue or in the cache.
func ModelNames() []string {
	var names []string
	for _, e := range embedded.Models() {
		names = append(names, e.Name)
	}
	return appendNew(append(names, hub.Names()...), StoredNames())
}

// verifierNames returns reward models among them, and probes.
func verifierNames() []string {
	var names []string
	for _, e := range embedded.Models() {
		if e.Role == embedded.Reward {
			names = append(names, e.Name)
		}
	}
	for _, e := range embedded.Probes() {
		names = append(names, e.Name)
	}
	for _, e := range hub.Catalogue() {
		if e.Format != "" {
			names = append(names, e.Name)
		}
	}
	return names
}

// StoredNames returns the models of the hub's cache. A user who completes a line does not want to
// hear why there are none.
func StoredNames() []string {
	h, err := (&getter{offline: true}).open()
	if err != nil {
		return nil
	}
	stored, err := h.List()
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range stored {
		names = append(names, shortName(s.Ref))
	}
	return names
}

// plans returns search plans in short, and names of methods.
func plans() []string {
	return appendNew(slices.Sorted(maps.Keys(server.DefaultOptions().Presets)), scaling.Names())
}

func appendNew(list, more []string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
