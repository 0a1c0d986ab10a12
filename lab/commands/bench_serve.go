package commands

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/lab/bench"
)

func newBenchServe() *cobra.Command {
	o, asJSON := bench.DefaultLoadOptions(), false
	var s cli.ServerFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Load any OpenAI-compatible server and report latencies",
		Long: `Sends streamed chat requests from a fixed number of clients, or at random times with
--rate, and reports time to first token (TTFT), time per output token (TPOT),
whole-request latency and throughput. Prompts differ from their first word on, so a
prefix cache helps only with --system-words, and with prompts of an earlier run of the
same --seed.

--compare loads another server alternately with the one at --url and prints the ratios
of neighbouring rounds: above 1 is better for tokens a second, below 1 for times.

--beside puts another load on the server in every other phase and prints what it does
to the clients: the ratio of their times to the mean of those in the phases before and
after, so a machine that slows down by itself does not count. The clients then ask
without end; --requests does not apply. The other load is written KEY=VALUE,...: model,
url, c (clients), n (requests; without it the load lasts for --phase), prompt-words,
max-tokens. Keys that are left out are as for the clients, but c is 1.

LUTRA_URL and LUTRA_API_KEY are the defaults of --url and --api-key.`,
		Example: `  lutra-lab bench serve --url http://127.0.0.1:8080/v1 --concurrency 32 --requests 128
  lutra-lab bench serve --url http://127.0.0.1:8000/v1 --model my-model --prompt-words 100 --max-tokens 64 --json
  lutra-lab bench serve --rate 2.5 --requests 100 --prompt-words 100 --max-tokens 64
  lutra-lab bench serve --model lutra-tiny-s -c 2 --beside model=lutra-tiny-s+bon16,c=32
  lutra-lab bench serve -c 2 --max-tokens 2000 --beside n=1,prompt-words=3000,max-tokens=1`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Complete(cmd.Flags()); err != nil {
				return err
			}
			o.URL, o.Key = s.URL, s.Key
			r, err := bench.Server(cmd.Context(), o, cmd.ErrOrStderr())
			return showReport(cmd, asJSON, r, err)
		},
	}
	f := cmd.Flags()
	s.Register(f, "load the server", o.URL)
	f.StringVar(&o.Model, "model", o.Model, "server's model to ask for, by its `NAME`; "+apiclient.DefaultModel+" is its first")
	f.IntVarP(&o.Concurrency, "concurrency", "c", o.Concurrency, "clients at once")
	f.Float64Var(&o.Rate, "rate", 0, "requests a second, at random times, instead of a number of clients")
	f.IntVar(&o.Seed, "seed", 0, "another seed has other prompts, and other times with --rate; the same one those that a cache may hold")
	f.IntVarP(&o.Requests, "requests", "n", o.Requests, "requests in all")
	f.IntVar(&o.PromptWords, "prompt-words", o.PromptWords, "words in a prompt")
	f.IntVar(&o.SystemWords, "system-words", 0, "words in a system message that all requests share")
	f.IntVar(&o.MaxTokens, "max-tokens", o.MaxTokens, "tokens to generate at most")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringArrayVar(&o.Compare, "compare", nil, "another server to load alternately: `NAME=URL`; may be repeated")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "rounds of --compare and --beside")
	f.StringVar(&o.Beside, "beside", "", "another load in every other phase: `KEY=VALUE,...`")
	f.DurationVar(&o.Timeout, "timeout", o.Timeout, "count a request as failed after this time")
	f.DurationVar(&o.Phase, "phase", o.Phase, "length of a phase with or without the load of --beside")
	cmd.MarkFlagsMutuallyExclusive("rate", "concurrency")
	cli.ServerChoices(cmd)
	return cmd
}
