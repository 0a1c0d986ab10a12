package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

func newAsk() *cobra.Command {
	var a askFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ask [QUESTION]",
		Short: "Answer one question, streamed to the terminal",
		Long: `Answers the question with the embedded model, a GGUF file or the server at --url.

What is piped into the command is the question if there is none, or it is -. Beside a
question it comes first: the text, an empty line, the question. Notes on the answer go
to standard error: that it was cut off or repeated itself, or what was searched. A terminal shows a thought
before the answer; a file or a pipe gets the answer without it.

Calls of --tools are printed as JSON after the text; lutra chat carries them out.

LUTRA_URL and LUTRA_API_KEY are the defaults of --url and --api-key; --url= loads a
model here all the same. --model is a file or a name as lutra serve takes it, and with
--url a name of the server's.`,
		Example: `  lutra ask "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --model model.gguf --temperature 0.7 "Why is the sky blue?"
  lutra ask --scaling "beam_search;n=16;width=4" "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
  lutra ask --url http://127.0.0.1:8080 --model lutra-tiny-l "What is 12 * 7?"
  echo "What is 12 * 7?" | lutra ask
  echo "A box holds 12 eggs. Ann buys 7 boxes." | lutra ask "How many eggs does she have?"`,
		Args: upTo("QUESTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			question, err := questionOf(cmd.Context(), args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return a.with(cmd, func(answerer chat.Answerer) error {
				return chat.Ask(cmd.Context(), answerer, &a.Options, question, cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			})
		},
	}
	a.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON when the answer is complete: with usage, finish reason and candidates")
	return cmd
}

// askFlags are the flags of ask and chat.
type askFlags struct {
	model         ModelFlags
	server        ServerFlags
	schema, tools string // files
	sampling      string // as it is written
	maxTokens     int
	chat.Options
}

func (a *askFlags) register(f *pflag.FlagSet) {
	a.model.Register(f)
	a.model.Quiet(f)
	a.server.Register(f, "ask the server", "")
	a.server.registerFormer(f)
	o := &a.Options
	f.StringVar(&o.System, "system", "", "system message")
	f.Float32P(temperatureFlag, "t", 0, "sampling temperature, 0 to 2; 0: the likeliest answer (default: as the model wants)")
	f.Float32(topPFlag, 0, "nucleus sampling, 0 to 1 (default: as the model wants)")
	f.StringVar(&a.sampling, samplingFlag, "", "how tokens are sampled, such as temperature=0.7,top_k=20,min_p=0.05 (default: as the model wants)")
	f.Lookup(temperatureFlag).DefValue, f.Lookup(topPFlag).DefValue = "", ""
	f.IntVar(&a.maxTokens, "max-tokens", chat.MostTokens, "tokens of an answer at most, 0: up to the context, as candidates of a search by default")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the sampling")
	ThinkingVar(f, &o.Thinking)
	f.StringVar(&a.schema, "schema", "", "hold answers to this JSON schema (`FILE`)")
	f.StringVar(&a.tools, "tools", "", "let the model call these tools (`FILE`): OpenAI's list as JSON, each perhaps with a command")
	f.StringVar(&o.Scaling, "scaling", "", "search for the answer, as in bon8, sc16 or \"beam_search;n=16;width=4\" (`PLAN`)")
}

// check reports the first wrong flag.
func (a *askFlags) check(f *pflag.FlagSet) error {
	if err := a.readSampling(f); err != nil {
		return err
	}
	if a.maxTokens < 0 {
		return usage.Errorf("--max-tokens: %d is negative", a.maxTokens)
	}
	if f.Changed("max-tokens") {
		a.MaxTokens = &a.maxTokens
	}
	if a.Scaling == chat.NoScaling {
		a.Scaling = ""
	}
	if err := a.readFiles(); err != nil {
		return err
	}
	if err := a.server.Complete(f); err != nil {
		return err
	}
	if a.URL, a.Key = a.server.URL, a.server.Key; a.URL == "" {
		if f.Changed(formerModel) {
			return usage.Errorf("--%s is for --url", formerModel)
		}
		return nil
	}
	names, err := a.server.Names(f)
	if err == nil && len(names) > 1 {
		err = usage.Errorf("--model: one of the server's models answers, got %d", len(names))
	}
	a.Model = names[0]
	return err
}

// The flags of how answers are sampled.
const (
	temperatureFlag = "temperature"
	topPFlag        = "top-p"
	samplingFlag    = "sampling"
)

// readSampling reads --sampling, and what has a flag of its own.
func (a *askFlags) readSampling(f *pflag.FlagSet) (err error) {
	if f.Changed(samplingFlag) {
		if a.Sampling, err = sampling.Parse(a.sampling); err != nil {
			return usage.Errorf("--%s: %w", samplingFlag, err)
		}
	}
	for flag, name := range map[string]string{temperatureFlag: "temperature", topPFlag: "top_p"} {
		if x, err := f.GetFloat32(flag); err == nil && f.Changed(flag) {
			if err := a.Sampling.Set(name, float64(x)); err != nil {
				return usage.Errorf("--%s: %w", flag, err)
			}
		}
	}
	return nil
}

// readFiles reads the schema and the tools.
func (a *askFlags) readFiles() (err error) {
	if a.schema != "" {
		if a.Schema, err = chat.ReadSchema(a.schema); err != nil {
			return usage.Errorf("--schema: %w", err)
		}
	}
	if a.tools != "" {
		if a.Tools, err = chat.ReadTools(a.tools); err != nil {
			return usage.Errorf("--tools: %w", err)
		}
	}
	if err := a.CheckTools(); err != nil {
		return usage.Errorf("--tools: %w", err)
	}
	return nil
}

// questionOf returns the argument, what is piped in, or both.
func questionOf(ctx context.Context, args []string, in io.Reader) (string, error) {
	var parts []string
	alone := len(args) == 0 || args[0] == "-"
	if alone && len(args) == 0 && output.IsTerminal(in) {
		return "", usage.Errorf("QUESTION is missing")
	}
	if alone || piped(in) {
		text, err := readQuestion(ctx, in)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	if !alone {
		parts = append(parts, strings.TrimSpace(args[0]))
	}
	question := strings.TrimSpace(strings.Join(parts, "\n\n"))
	switch {
	case question == "" && len(args) == 0:
		return "", usage.Errorf("QUESTION is missing")
	case question == "", !alone && parts[len(parts)-1] == "":
		return "", usage.Errorf("QUESTION is empty")
	}
	if len(question) > chat.MaxQuestion {
		return "", errLongQuestion
	}
	return question, nil
}

// piped reports whether somebody has connected in to something that ends: a pipe or a
// file, but no terminal and no device.
func piped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

var errLongQuestion = fmt.Errorf("the question has more than %d bytes", chat.MaxQuestion)

func readQuestion(ctx context.Context, in io.Reader) (string, error) {
	data, err := ReadUntil(ctx, io.LimitReader(in, chat.MaxQuestion+1))
	if err == nil && len(data) > chat.MaxQuestion {
		err = errLongQuestion
	}
	return strings.TrimSpace(string(data)), err
}

// ReadUntil reads all of in, unless ctx ends first: the reader then ends with in or the
// process.
func ReadUntil(ctx context.Context, in io.Reader) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(in)
		read <- result{data, err}
	}()
	select {
	case r := <-read:
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// with runs f with the server at --url or with a model loaded here.
func (a *askFlags) with(cmd *cobra.Command, f func(chat.Answerer) error) (err error) {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	if cmd.Flags().Changed(formerModel) {
		fmt.Fprintf(cmd.ErrOrStderr(), "--%s is called --model now\n", formerModel)
	}
	var answerer chat.Answerer
	if a.URL != "" {
		answerer, err = chat.NewRemote(cmd.Context(), &a.Options)
	} else {
		answerer, err = a.load(cmd)
	}
	if err != nil {
		return err
	}
	if a.Scaling != "" {
		if err := answerer.CanSearch(a.Scaling); err != nil {
			return errors.Join(usage.Errorf("--scaling: %w", err), answerer.Close())
		}
	}
	defer func() {
		if closed := answerer.Close(); err == nil {
			err = closed
		}
	}()
	return f(answerer)
}

func (a *askFlags) load(cmd *cobra.Command) (chat.Answerer, error) {
	cfg, err := a.model.load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	log := NewLogger(cfg.Log, cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel) // the answer is the output
	}
	cfg.Warn(log)
	return chat.NewLocal(cmd.Context(), cfg, log, a.model.getter(cmd, cfg.Log).get, &Loading{W: cmd.ErrOrStderr()}, a.Scaling != "")
}
