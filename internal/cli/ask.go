package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/usage"
)

func newAsk() *cobra.Command {
	var m modelFlags
	var o chat.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Answer one question, streamed to the terminal",
		Long: `Answers the question with the embedded model, a GGUF file or the server at --url.
The question - is read from standard input.`,
		Example: `  lutra ask "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --model model.gguf --temperature 0.7 "Why is the sky blue?"
  lutra ask --scaling "beam_search;n=16;width=4" "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --url http://127.0.0.1:8080/v1 "What is 12 * 7?"
  echo "What is 12 * 7?" | lutra ask -`,
		Args: arguments("QUESTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			question, err := questionOf(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return withAnswerer(cmd, &m, &o, func(a chat.Answerer) error {
				return chat.Ask(cmd.Context(), a, &o, question, cmd.OutOrStdout(), asJSON)
			})
		},
	}
	m.register(cmd.Flags())
	askFlags(cmd.Flags(), &o)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON when the answer is complete")
	return cmd
}

// askFlags define the flags of ask and chat.
func askFlags(f *pflag.FlagSet, o *chat.Options) {
	f.StringVar(&o.URL, "url", "", "ask the server at this API base `URL` instead of loading a model")
	f.StringVar(&o.Key, "api-key", "", "bearer `KEY` for --url")
	f.StringVar(&o.Model, "model-name", chat.DefaultModel, "model to ask for with --url")
	f.StringVar(&o.System, "system", "", "system message")
	f.Float32VarP(&o.Temperature, "temperature", "t", 0, "sampling temperature, 0 to 2; 0: the likeliest answer")
	f.Float32Var(&o.TopP, "top-p", 1, "nucleus sampling, 0 to 1")
	f.IntVar(&o.MaxTokens, "max-tokens", 0, "tokens to generate at most (default: up to the context)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the sampling")
	thinkingVar(f, &o.Thinking)
	f.StringVar(&o.Scaling, "scaling", "", "search for the answer, as in bon8, sc16 or \"beam_search;n=16;width=4\" (`PLAN`)")
}

// checkAskFlags reports the first wrong flag.
func checkAskFlags(f *pflag.FlagSet, o *chat.Options) error {
	o.TemperatureSet = f.Changed("temperature")
	if err := chat.CheckTemperature(o.Temperature); err != nil {
		return usage.Errorf("--temperature: %w", err)
	}
	if !(o.TopP >= 0 && o.TopP <= 1) {
		return usage.Errorf("--top-p: %v is outside 0 to 1", o.TopP)
	}
	if o.MaxTokens < 0 {
		return usage.Errorf("--max-tokens: %d is negative", o.MaxTokens)
	}
	for _, name := range []string{"api-key", "model-name"} {
		if o.URL == "" && f.Changed(name) {
			return usage.Errorf("--%s is for --url", name)
		}
	}
	if o.URL != "" && f.Changed("model") {
		return usage.Errorf("--model loads a model here; a server's model is --model-name")
	}
	if o.Scaling == chat.NoScaling {
		o.Scaling = ""
	}
	return nil
}

func questionOf(arg string, in io.Reader) (string, error) {
	if arg == "-" {
		data, err := io.ReadAll(io.LimitReader(in, chat.MaxQuestion+1))
		if err != nil {
			return "", err
		}
		if len(data) > chat.MaxQuestion {
			return "", fmt.Errorf("the question has more than %d bytes", chat.MaxQuestion)
		}
		arg = string(data)
	}
	if strings.TrimSpace(arg) == "" {
		return "", usage.Errorf("QUESTION is empty")
	}
	return strings.TrimSpace(arg), nil
}

// withAnswerer runs f with the server at --url or with a model loaded here.
func withAnswerer(cmd *cobra.Command, m *modelFlags, o *chat.Options, f func(chat.Answerer) error) (err error) {
	if err := checkAskFlags(cmd.Flags(), o); err != nil {
		return err
	}
	var a chat.Answerer
	if o.URL != "" {
		a, err = chat.NewRemote(cmd.Context(), o)
	} else {
		a, err = loadLocal(cmd, m, o)
	}
	if err != nil {
		return err
	}
	if o.Scaling != "" {
		if err := a.CanSearch(o.Scaling); err != nil {
			return errors.Join(usage.Errorf("--scaling: %w", err), a.Close())
		}
	}
	defer func() {
		if closed := a.Close(); err == nil {
			err = closed
		}
	}()
	return f(a)
}

func loadLocal(cmd *cobra.Command, m *modelFlags, o *chat.Options) (chat.Answerer, error) {
	cfg, err := m.load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	log := newLogger(cfg.Log, cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel) // the answer is the output
	}
	cfg.Warn(log)
	return chat.NewLocal(cmd.Context(), cfg, log, m.getter(cmd, cfg.Log).get, &loading{w: cmd.ErrOrStderr()}, o.Scaling != "")
}
