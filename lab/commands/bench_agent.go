package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchAgent() *cobra.Command {
	o, asJSON := bench.DefaultAgentOptions(), false
	var s cli.ServerFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Have a server answer the session of an agent that writes code",
		Long: `Sends what an agent that writes code sends in a session: its instructions and tools, a task, and in each turn
one more call of a tool with its result; at the end of each prompt a reminder that the next one lacks, and now
and then a short request for a title. Whatever the server answers, the session is the same. It reports how many
tokens were computed again that an earlier prompt began with, by the cached_tokens of usage (about: the share of
a prompt that is known is measured in bytes), the time to first token (TTFT), and the total.

--compare has another server answer the same session afterwards. A server that has been started anew shows with
the same --seed what it has kept, and with --from how the session goes on.

LUTRA_URL and LUTRA_API_KEY are the defaults of --url and --api-key.`,
		Example: `  lutra-lab bench agent --url http://127.0.0.1:8080/v1 --model lutra-tiny-l --turns 4 --words 24 --max-tokens 8`,
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Complete(cmd.Flags()); err != nil {
				return err
			}
			o.URL, o.Key = s.URL, s.Key
			r, err := bench.Agent(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	s.Register(f, "ask the server", o.URL)
	f.StringVar(&o.Model, "model", o.Model, "server's model to ask for, by its `NAME`; "+apiclient.DefaultModel+" is its first")
	f.IntVar(&o.Turns, "turns", o.Turns, "calls of a tool")
	f.IntVar(&o.From, "from", 0, "ask from this turn on, as if the server had answered those before it")
	f.IntVar(&o.Words, "words", o.Words, "words of the last prompt, about; a word is a token or a little more")
	f.IntVar(&o.MaxTokens, "max-tokens", o.MaxTokens, "tokens to generate at most")
	f.IntVar(&o.Seed, "seed", 0, "another seed has another session")
	f.StringArrayVar(&o.Compare, "compare", nil, "another server to ask afterwards: `NAME=URL`; may be repeated")
	f.DurationVar(&o.Timeout, "timeout", o.Timeout, "give up when a request takes longer")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	cli.ServerChoices(cmd)
	return cmd
}
