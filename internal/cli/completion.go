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
	"github.com/lutra-lm/lutra/internal/eval"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// choices are the values that a shell offers, and whether file names may follow.
type choices struct {
	words  func() []string
	files  bool
	list   bool   // several, separated by commas
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
var flagChoices = map[string]choices{
	"model":       {words: modelNames, files: true, served: ofNamed},
	"draft-model": {words: modelNames, files: true},
	"vocabulary":  {words: modelNames, files: true},
	"verifier":    {words: verifierNames, files: true},
	"lora":        {files: true},
	"scaling":     {words: plans},
	"methods":     {words: eval.Methods, list: true},
	"backend":     {words: config.Backends},
	"kv-type":     {words: config.KVTypes},
	"log":         {words: config.LogLevels},
	"speculation": {words: func() []string { return []string{"auto", "off"} }},
	"placement":   {words: hexagon.Placements},
}

// serverChoices offers no model of this machine where a server's is meant.
func serverChoices(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc("model", choices{words: func() []string { return []string{apiclient.DefaultModel} }, served: ofNamed}.complete); err != nil {
		panic(err) // the flag is the command's
	}
}

// argumentChoices completes commands' arguments; other arguments are no files.
var argumentChoices = map[string]choices{
	"lutra convert":      {words: storedNames, files: true},
	"lutra info":         {words: modelNames, files: true},
	"lutra pull":         {words: hub.Names},
	"lutra rm":           {words: storedNames},
	"lutra run":          {words: modelNames, files: true, served: ofServer},
	"lutra serve":        {words: modelNames, files: true},
	"lutra stop":         {words: func() []string { return []string{"all"} }, served: ofServer},
	"lutra schema check": {files: true},
	"lutra quantize":     {words: modelNames, files: true},
}

// offerChoices has the shell complete values of flags and arguments.
func offerChoices(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		offerChoices(sub)
	}
	if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = argumentChoices[cmd.CommandPath()].complete
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		c, known := flagChoices[f.Name]
		if w, ok := f.Value.(interface{ choices() []string }); ok {
			c, known = choices{words: w.choices}, true
		}
		if name, _ := pflag.UnquoteUsage(f); !known && (name == "FILE" || name == "DIR") {
			return
		}
		if _, own := cmd.GetFlagCompletionFunc(f.Name); own || f.Value.Type() == "bool" {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, c.complete); err != nil {
			panic(err) // the flag is the command's
		}
	})
}

// complete implements cobra.CompletionFunc.
func (c choices) complete(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if c.served != ofNone {
		c = c.with(servedNames(cmd, c.served))
	}
	before := ""
	if at := strings.LastIndexByte(begun, ','); c.list && at >= 0 {
		before = begun[:at+1]
	}
	var list []string
	if c.words != nil {
		for _, w := range c.words() {
			if strings.HasPrefix(before+w, begun) {
				list = append(list, before+w)
			}
		}
	}
	if c.files {
		return list, cobra.ShellCompDirectiveDefault
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// with offers a server's models: alone if they are those of a server that was named.
func (c choices) with(names []string, named bool) choices {
	words := c.words
	if named && c.files {
		return choices{words: func() []string { return names }}
	}
	c.words = func() []string { return appendNew(words(), names) }
	return c
}

// servedNames asks a server for its models, and tells whether somebody has named the server. A
// user who completes a line does not want to hear why there are none.
func servedNames(cmd *cobra.Command, which served) (names []string, named bool) {
	flags := serverFlags{url: os.Getenv(urlVariable), key: os.Getenv(keyVariable)}
	if f := cmd.Flags().Lookup("url"); f != nil && f.Changed {
		flags.url = f.Value.String()
	}
	if f := cmd.Flags().Lookup("api-key"); f != nil && f.Changed {
		flags.key = f.Value.String()
	}
	named = flags.url != ""
	if !named && which == ofNamed {
		return nil, false
	}
	if !named {
		cfg, err := config.Load("", os.Environ(), nil)
		if err != nil {
			return nil, false
		}
		if flags.url, err = ownURL(cfg.Server); err != nil {
			return nil, false
		}
	}
	client, err := apiclient.New(flags.url, flags.key)
	if err != nil {
		return nil, named
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	list, _ := client.List(ctx)
	return list.Names, named
}

// modelNames returns embedded models, those of the catalogue, and those of the cache.
func modelNames() []string {
	var names []string
	for _, e := range embedded.Models() {
		names = append(names, e.Name)
	}
	return appendNew(append(names, hub.Names()...), storedNames())
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

// storedNames returns the models of the hub's cache. A user who completes a line does not want to
// hear why there are none.
func storedNames() []string {
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
