package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/sashabaranov/go-openai"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
)

// turn is one message of a conversation.
type turn struct{ role, content string }

// askOptions are the sampling flags of ask and chat.
type askOptions struct {
	url, key, name string // a server to ask instead of loading a model
	system         string
	temperature    float32
	topP           float32
	maxTokens      int
	seed           uint64
	scaling        string // a search's written form
}

func (o *askOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "url", "", "ask the server at this API base `URL` instead of loading a model")
	f.StringVar(&o.key, "api-key", "", "bearer `KEY` for --url")
	f.StringVar(&o.name, "model-name", "default", "model to ask for with --url")
	f.StringVar(&o.system, "system", "", "system message")
	f.Float32VarP(&o.temperature, "temperature", "t", 0, "sampling temperature, 0 for the likeliest answer")
	f.Float32Var(&o.topP, "top-p", 1, "nucleus sampling")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "tokens to generate at most (default: up to the context)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the sampling")
	f.StringVar(&o.scaling, "scaling", "", "search for the answer, as in bon8, sc16 or \"beam_search;n=16;width=4\" (`PLAN`)")
}

// answerer streams the answer to a conversation, in pieces of text.
type answerer func(ctx context.Context, conversation []turn, emit func(string) error) error

// answerStats is what `ask --json` prints.
type answerStats struct {
	Answer  string  `json:"answer"`
	Seconds float64 `json:"seconds"`
	TTFT    float64 `json:"ttft_ms"`
}

func newAsk() *cobra.Command {
	var m modelFlags
	var o askOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Answer one question, streamed to the terminal",
		Example: `  lutra ask "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --model model.gguf --temperature 0.7 "Why is the sky blue?"
  lutra ask --scaling "beam_search;n=16;width=4" "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --url http://127.0.0.1:8080/v1 "What is 12 * 7?"`,
		Args: arguments("QUESTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAnswerer(cmd, &m, &o, func(ctx context.Context, answer answerer) error {
				return askOnce(ctx, answer, o.conversation(args[0]), cmd.OutOrStdout(), asJSON)
			})
		},
	}
	m.register(cmd.Flags())
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON when the answer is complete")
	return cmd
}

// conversation begins one with the system message, if any.
func (o *askOptions) conversation(question string) []turn {
	var c []turn
	if o.system != "" {
		c = append(c, turn{openai.ChatMessageRoleSystem, o.system})
	}
	return append(c, turn{openai.ChatMessageRoleUser, question})
}

func askOnce(ctx context.Context, answer answerer, c []turn, w io.Writer, asJSON bool) error {
	var text strings.Builder
	var stats answerStats
	start := time.Now()
	err := answer(ctx, c, func(piece string) error {
		if text.Len() == 0 {
			stats.TTFT = milliseconds(time.Since(start))
		}
		text.WriteString(piece)
		if asJSON {
			return nil
		}
		_, err := io.WriteString(w, piece)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		stats.Answer, stats.Seconds = text.String(), time.Since(start).Seconds()
		return writeJSON(w, stats)
	}
	_, err = fmt.Fprintln(w)
	return err
}

// withAnswerer runs f with the server at --url, or with a model loaded here.
func withAnswerer(cmd *cobra.Command, m *modelFlags, o *askOptions, f func(context.Context, answerer) error) error {
	if o.scaling != "" && !cmd.Flags().Changed("temperature") {
		o.temperature = searchTemperature
	}
	if o.url != "" {
		return f(cmd.Context(), remoteAnswerer(o))
	}
	cfg, err := m.load(cmd.Flags())
	if err != nil {
		return err
	}
	cfg.Models = cfg.Models[:1]
	if o.scaling == "" {
		cfg.Verifiers = nil
	}
	log := cfg.Log.logger(cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel) // the answer is the output
	}
	return withRuntime(cmd.Context(), cfg, log, func(ctx context.Context, r *runtime) error {
		strategy, err := o.strategy(r, cfg.Search)
		if err != nil {
			return err
		}
		return f(ctx, localAnswerer(strategy, o))
	})
}

// withRuntime loads the models, runs their engines beside f and takes all down.
func withRuntime(ctx context.Context, cfg Config, log zerolog.Logger, f func(context.Context, *runtime) error) error {
	r, err := newRuntime(cfg, log, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	engines, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(engines) }()
	err = f(ctx, r)
	stop()
	return errors.Join(err, <-ran)
}

func localAnswerer(strategy tts.Strategy, o *askOptions) answerer {
	return func(ctx context.Context, conversation []turn, emit func(string) error) error {
		req := &tts.Request{}
		for _, t := range conversation {
			req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: t.role, Content: t.content})
		}
		req.Sampling.Temperature = o.temperature
		req.Sampling.TopP = o.topP
		req.Sampling.MaxTokens = o.maxTokens
		req.Sampling.Seed = o.seed
		for d, err := range strategy.Run(ctx, req) {
			if err != nil {
				return err
			}
			if d.Text == "" {
				continue
			}
			if err := emit(d.Text); err != nil {
				return err
			}
		}
		return nil
	}
}

func remoteAnswerer(o *askOptions) answerer {
	cfg := openai.DefaultConfig(o.key)
	cfg.BaseURL = apiBase(o.url)
	if o.scaling != "" {
		cfg.HTTPClient = scaled{o.scaling}
	}
	client := openai.NewClientWithConfig(cfg)
	return func(ctx context.Context, conversation []turn, emit func(string) error) error {
		seed := int(o.seed)
		req := openai.ChatCompletionRequest{Model: o.name, Temperature: o.temperature, TopP: o.topP, Seed: &seed}
		req.MaxTokens = o.maxTokens //lint:ignore SA1019 every server knows it, not all know its successor
		for _, t := range conversation {
			req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: t.role, Content: t.content})
		}
		if o.temperature == 0 {
			req.TopP = 1e-6 // the client's types drop a zero temperature; one token of nucleus is greedy too
			req.Temperature = 1e-6
		}
		stream, err := client.CreateChatCompletionStream(ctx, req)
		if err != nil {
			return err
		}
		defer stream.Close()
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, c := range chunk.Choices {
				if c.Delta.Content == "" {
					continue
				}
				if err := emit(c.Delta.Content); err != nil {
					return err
				}
			}
		}
	}
}
