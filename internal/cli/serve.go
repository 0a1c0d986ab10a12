package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server"
)

// modelFlags are shared by the commands that run a model themselves.
type modelFlags struct {
	config string
}

func (m *modelFlags) register(f *pflag.FlagSet) {
	f.StringVar(&m.config, "config", "", "configuration `FILE` (see config.yaml)")
	f.StringArray("model", nil, "GGUF `[NAME=]FILE` or an embedded model's name; may be repeated")
	f.Int("threads", 0, "compute threads (default: one a physical core)")
	f.String("kv-type", "f16", "KV cache format: f16 or int8")
	f.String("speculation", string(batcher.SpeculateAuto), "tokens to compute before they are known: auto, off or a number")
	f.String("draft-model", "", "small GGUF `FILE` of the same vocabulary, or an embedded model's name, that guesses them too")
	f.String("kv-mem", "auto", "KV cache memory a model, such as 2GiB")
	f.String("log", "info", "log `LEVEL`: trace, debug, info, warn, error")
}

// load merges the configuration's sources.
func (m *modelFlags) load(f *pflag.FlagSet) (Config, error) {
	return loadConfig(m.config, os.Environ(), f)
}

func newServe() *cobra.Command {
	var m modelFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve models behind the OpenAI API",
		Long: `Serves chat completions, completions and the tokenizer over HTTP. Without --model
the embedded reasoner answers. SIGTERM drains: running answers end, new ones are refused.`,
		Example: `  lutra serve
  lutra serve --addr 0.0.0.0:8080 --api-key secret --model falcon3-1b-tq2_0.gguf
  lutra serve --config config.yaml --threads 8`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := m.load(cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, cmd)
		},
	}
	f := cmd.Flags()
	m.register(f)
	f.String("addr", "127.0.0.1:8080", "`HOST:PORT` to listen on")
	f.StringArray("api-key", nil, "accept this bearer `KEY`; may be repeated")
	f.Bool("strict", false, "refuse unknown request fields")
	f.String("tls-cert", "", "certificate `FILE` (PEM); serves HTTPS with --tls-key")
	f.String("tls-key", "", "key `FILE` (PEM)")
	return cmd
}

// serve answers /healthz while models load, publishes them, and drains when
// ctx ends: the server first, so that running requests keep their engines.
func serve(ctx context.Context, cfg Config, cmd *cobra.Command) error {
	log := cfg.Log.logger(cmd.ErrOrStderr())
	cfg.Server.Log = log
	srv := server.New(cfg.Server)
	listener, err := listen(cfg.Server.Addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	served := make(chan struct{})
	g.Go(func() error {
		defer close(served)
		defer cancel()
		return srv.Serve(ctx, listener)
	})
	g.Go(func() error {
		defer cancel()
		r, err := newRuntime(cfg, log, srv.StepObserver)
		if err != nil {
			return err
		}
		defer r.Close()
		srv.Register(kernelCollector{r.pool.Meter()})
		if err := srv.Publish(r.served()...); err != nil {
			return err
		}
		ready, try := readyLines(cfg.Server, listener.Addr())
		log.Info().Str("try", try).Msg(ready)
		engines, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		go func() { <-served; stop() }()
		return r.Run(engines)
	})
	return g.Wait()
}

func (r *runtime) served() []server.Served {
	var list []server.Served
	for _, h := range r.all() {
		list = append(list, server.Served{Model: h.model, Reward: h.reward, Aliases: h.aliases, Demo: h.embedded})
	}
	return list
}
