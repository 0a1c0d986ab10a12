package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// message is one of a conversation.
type message struct{ role, content string }

// The roles of messages, as chat templates know them.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
)

// askOptions are the flags of ask and chat; commands in a chat change some.
type askOptions struct {
	url, key, name string // a server to ask instead of loading a model
	system         string
	temperature    float32
	topP           float32
	maxTokens      int
	seed           uint64
	scaling        string // a search's written form; empty: none
	warm           bool   // the temperature was chosen, whatever the scaling
}

func (o *askOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "url", "", "ask the server at this API base `URL` instead of loading a model")
	f.StringVar(&o.key, "api-key", "", "bearer `KEY` for --url")
	f.StringVar(&o.name, "model-name", defaultName, "model to ask for with --url")
	f.StringVar(&o.system, "system", "", "system message")
	f.Float32VarP(&o.temperature, "temperature", "t", 0, "sampling temperature, 0 to 2; 0: the likeliest answer")
	f.Float32Var(&o.topP, "top-p", 1, "nucleus sampling, 0 to 1")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "tokens to generate at most (default: up to the context)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the sampling")
	f.StringVar(&o.scaling, "scaling", "", "search for the answer, as in bon8, sc16 or \"beam_search;n=16;width=4\" (`PLAN`)")
}

// validate reports the first flag out of its range.
func (o *askOptions) validate(f *pflag.FlagSet) error {
	o.warm = f.Changed("temperature")
	if err := validTemperature(o.temperature); err != nil {
		return usage.Errorf("--temperature: %w", err)
	}
	if !(o.topP >= 0 && o.topP <= 1) {
		return usage.Errorf("--top-p: %v is outside 0 to 1", o.topP)
	}
	if o.maxTokens < 0 {
		return usage.Errorf("--max-tokens: %d is negative", o.maxTokens)
	}
	for _, name := range []string{"api-key", "model-name"} {
		if o.url == "" && f.Changed(name) {
			return usage.Errorf("--%s is for --url", name)
		}
	}
	if o.url != "" && f.Changed("model") {
		return usage.Errorf("--model loads a model here; the one of a server is --model-name")
	}
	if o.scaling == noScaling {
		o.scaling = ""
	}
	return nil
}

func validTemperature(t float32) error {
	if !(t >= 0 && t <= 2) { // NaN is outside too
		return fmt.Errorf("%v is outside 0 to 2", t)
	}
	return nil
}

// heat is the temperature to sample with: candidates of the greedy answer would
// all be the same.
func (o *askOptions) heat() float32 {
	if o.scaling != "" && !o.warm {
		return scaling.DefaultTemperature
	}
	return o.temperature
}

// answered is what is known when an answer is complete.
type answered struct {
	dropped int  // messages left out, the oldest, because the conversation no longer fits
	cut     bool // the answer ended at --max-tokens or at the context's end
}

// answerer answers conversations: with a model loaded here, or by a server.
type answerer interface {
	// answer streams the answer in pieces of text.
	answer(ctx context.Context, o *askOptions, conversation []message, emit func(string) error) (answered, error)
	// models names what use can change to.
	models(ctx context.Context) ([]string, error)
	// use answers with another model from now on; after an error with the same.
	use(ctx context.Context, name string) error
	// canSearch says why answers cannot be searched for by a plan, if so.
	canSearch(plan string) error
	// about names the model in use, and says a little about it.
	about() (name, words string)
	close() error
}

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
			return withAnswerer(cmd, &m, &o, func(a answerer) error {
				return askOnce(cmd.Context(), a, &o, question, cmd.OutOrStdout(), asJSON)
			})
		},
	}
	m.register(cmd.Flags())
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON when the answer is complete")
	return cmd
}

// maxQuestion bounds what is read as one question, in bytes.
const maxQuestion = 1 << 20

func questionOf(arg string, in io.Reader) (string, error) {
	if arg == "-" {
		data, err := io.ReadAll(io.LimitReader(in, maxQuestion+1))
		if err != nil {
			return "", err
		}
		if len(data) > maxQuestion {
			return "", fmt.Errorf("the question has more than %d bytes", maxQuestion)
		}
		arg = string(data)
	}
	if strings.TrimSpace(arg) == "" {
		return "", usage.Errorf("QUESTION is empty")
	}
	return strings.TrimSpace(arg), nil
}

// opening begins a conversation with the system message, if any.
func (o *askOptions) opening() []message {
	if o.system == "" {
		return nil
	}
	return []message{{roleSystem, o.system}}
}

func askOnce(ctx context.Context, a answerer, o *askOptions, question string, w io.Writer, asJSON bool) error {
	var text strings.Builder
	var stats answerStats
	start := time.Now()
	_, err := a.answer(ctx, o, append(o.opening(), message{roleUser, question}), func(piece string) error {
		if text.Len() == 0 {
			stats.TTFT = 1000 * time.Since(start).Seconds()
		}
		text.WriteString(piece)
		if asJSON {
			return nil
		}
		_, err := io.WriteString(w, output.ForTerminal(w, piece))
		return err
	})
	if err != nil {
		if text.Len() > 0 && !asJSON {
			fmt.Fprintln(w) // the error begins a line of its own
		}
		return err
	}
	if asJSON {
		stats.Answer, stats.Seconds = text.String(), time.Since(start).Seconds()
		return output.JSON(w, stats)
	}
	_, err = fmt.Fprintln(w)
	return err
}

// withAnswerer runs f with the server at --url, or with a model loaded here.
func withAnswerer(cmd *cobra.Command, m *modelFlags, o *askOptions, f func(answerer) error) (err error) {
	if err := o.validate(cmd.Flags()); err != nil {
		return err
	}
	var a answerer
	if o.url != "" {
		a, err = newRemote(cmd.Context(), o)
	} else {
		a, err = newLocal(cmd, m, o)
	}
	if err != nil {
		return err
	}
	if o.scaling != "" {
		if err := a.canSearch(o.scaling); err != nil {
			return errors.Join(usage.Errorf("--scaling: %w", err), a.close())
		}
	}
	defer func() {
		if closed := a.close(); err == nil {
			err = closed
		}
	}()
	return f(a)
}
