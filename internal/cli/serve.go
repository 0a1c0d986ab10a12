package cli

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/weights"
	"github.com/lutra-lm/lutra/server"
)

// ModelFlags are shared by the commands that run a model themselves.
type ModelFlags struct {
	config  string
	packing string
	offline bool
	// sampling overrides the sampling of all models, field by field, where a command has the flag.
	sampling string
	// context is the longest sequence of all models; 0: each has its own.
	context int
	rope    config.RopeScaling
	// letters adds llama-server's -c and -t, which mean other flags elsewhere.
	letters bool
}

func (m *ModelFlags) Register(f *pflag.FlagSet) {
	letter := func(l string) string {
		if m.letters {
			return l
		}
		return ""
	}
	f.StringVar(&m.config, "config", "", "configuration `FILE` (see config.yaml)")
	f.StringArrayP("model", "m", nil, "GGUF `[NAME=]FILE`, hf:OWNER/REPO[:FILE|:QUANT], ollama:NAME[:TAG], or a name of the catalogue or of an embedded model; may be repeated")
	f.StringArray("lora", nil, "LoRA adapter of the first model, `[NAME=]FILE[:SCALE]`: GGUF, or a directory that PEFT has saved; may be repeated")
	f.StringArray("verifier", nil, "reward model that judges for searches, named as --model; may be repeated (default: the embedded one)")
	f.BoolVar(&m.offline, "offline", false, "download no models")
	f.IntVarP(&m.context, "context", letter("c"), 0, "longest sequence in `TOKENS` (default: each model's own)")
	RopeFlags(f, &m.rope)
	WordVar(f, &m.packing, "packing", "", weights.Packings(), "run-time packing of the ternary weights of models that name none")
	f.String("backend", config.CPU, "where matrices and attention are computed: "+strings.Join(config.Backends(), ", "))
	npuFlags(f)
	f.IntP("threads", letter("t"), 0, "compute threads (default: one a physical core)")
	f.String("kv-type", "f16", "KV cache format: f16, int8 or int4, or of keys and values apart, as int8/int4")
	f.String("speculation", string(batcher.SpeculateAuto), "guess tokens ahead and verify them: auto, off or how many")
	f.String("draft-model", "", "draft model for --speculation: a small GGUF `FILE` of the same vocabulary, or another name that --model takes")
	f.String("kv-disk", "", "keep what was computed of prompts in this `FOLDER`, for later starts and other processes")
	f.String("kv-mem", "auto", "KV cache memory for each model, such as 2GiB")
	f.String("expert-mem", "auto", "memory for the experts of each mixture, such as 12GiB; those that do not fit are read from the file when they are wanted")
	f.String("log", "info", "log `LEVEL`: trace, debug, info, warn, error")
}

// RopeFlags define how the context of models is extended, by llama.cpp's names.
func RopeFlags(f *pflag.FlagSet, r *config.RopeScaling) {
	WordVar(f, &r.Type, "rope-scaling", "", config.ScalingTypes(), "how the context of models is extended, by default as their files say")
	f.Float64Var(&r.Factor, "rope-scale", 0, "with --rope-scaling, how many times the original context is wanted: a `FACTOR` from 1 on")
	f.IntVar(&r.Original, "yarn-orig-ctx", 0, "with --rope-scaling, the `TOKENS` that models were made for (default: as their files say)")
}

// Quiet says that a command logs warnings alone unless --log is given: its output is
// something else.
func (m *ModelFlags) Quiet(f *pflag.FlagSet) {
	f.Lookup("log").DefValue = "warn"
}

// npuFlags say how a model with experts uses a Hexagon backend. They override keys of
// config.yaml.
func npuFlags(f *pflag.FlagSet) {
	d := config.DefaultHexagon()
	f.String("npu-plan", "", "with a Hexagon backend, the plan of a model's experts: `FILE` of lutra-lab npu plan --moe --json (default: equal groups)")
	f.String("placement", d.Placement, "with a Hexagon backend, what of a model with experts the NPU computes: "+strings.Join(hexagon.Placements(), ", "))
}

// load reads the configuration and the flags.
func (m *ModelFlags) load(f *pflag.FlagSet) (config.Config, error) {
	cfg, err := config.Load(m.config, os.Environ(), f)
	var sampled sampling.Config
	if err == nil && m.sampling != "" {
		if sampled, err = sampling.Parse(m.sampling); err != nil {
			err = usage.Errorf("--%s: %w", samplingFlag, err)
		}
	}
	if err == nil && m.context < 0 {
		err = usage.Errorf("--context: %d is negative", m.context)
	}
	for i := range cfg.Models {
		cfg.Models[i].Packing = cmp.Or(cfg.Models[i].Packing, m.packing)
		cfg.Models[i].Context = cmp.Or(m.context, cfg.Models[i].Context)
		cfg.Models[i].Sampling = sampled.Or(cfg.Models[i].Sampling)
		md, faulty := m.rope.Metadata(cfg.Models[i].Metadata)
		cfg.Models[i].Metadata, err = md, cmp.Or(err, faulty)
	}
	return cfg, err
}

// Prepare loads the configuration, then downloads the models that are not on this machine.
func (m *ModelFlags) Prepare(cmd *cobra.Command) (config.Config, error) {
	cfg, err := m.load(cmd.Flags())
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Get(cmd.Context(), m.getter(cmd, cfg.Log).get)
}

// getter logs as the configuration says.
func (m *ModelFlags) getter(cmd *cobra.Command, c config.Log) *getter {
	log := NewLogger(c, cmd.ErrOrStderr())
	return &getter{offline: m.offline, errOut: cmd.ErrOrStderr(), log: &log}
}

func newServe() *cobra.Command {
	m := ModelFlags{letters: true}
	cmd := &cobra.Command{
		Use:   "serve [MODEL...]",
		Short: "Serve models behind the OpenAI API",
		Long: `Serves chat completions, completions and the tokenizer over HTTP. MODEL is as of --model;
without one the embedded reasoner answers. A model of the hub that is not on this machine is
downloaded first, while /healthz answers and /readyz says 503; --offline forbids it.

--hf-repo (-hf), --host, --port, --ctx-size and other flags of llama-server that mean something here
are taken too.

By default the server is reached from this machine alone. --addr 0.0.0.0:8080 opens it to
others by IPv4, [::]:8080 by IPv6 too; --api-keys-file then says who may ask. Keys of
--api-key can be seen in the list of processes.

Models that the configuration names, of the folder of --models-dir, and those that have been
pulled are all served: the first at once, the others as far as there is room, and when a
request names them. The least recently used one goes for another.

With --config or --models-dir, SIGHUP has both read again, and models come and go; with
--api-keys-file or --tls-cert, these, which are also read when they change.
SIGTERM drains, and SIGHUP otherwise: new requests are refused with 503 for
server.lame_duck, then the port closes, and running answers have until
server.drain_timeout to end, whose last second is for those that are cancelled. Ctrl-C
does the same without the lame-duck time. A second signal ends at once, but for a SIGTERM
or SIGHUP that follows the first within a second.`,
		Example: `  lutra serve
  lutra serve --addr 0.0.0.0:8080 --api-keys-file keys.txt --model falcon3-1b-tq2_0.gguf
  lutra serve model.gguf --context 512
  lutra serve --model bonsai-1.7b
  lutra serve --config config.yaml --threads 8`,
		RunE: func(cmd *cobra.Command, models []string) error {
			for _, name := range models {
				if err := cmd.Flags().Set("model", name); err != nil {
					return err
				}
			}
			if err := errors.Join(m.listenOn(cmd.Flags()), m.cacheAs(cmd.Flags())); err != nil {
				return err
			}
			cfg, err := m.load(cmd.Flags())
			if err != nil {
				return err
			}
			read := func() (config.Config, error) { return m.load(cmd.Flags()) }
			if m.config == "" && cfg.Loading.Dir == "" {
				read = nil
			}
			return serve(cmd.Context(), cfg, read, m.getter(cmd, cfg.Log), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	m.Register(f)
	llamaServerFlags(f)
	f.StringVar(&m.sampling, samplingFlag, "", "how tokens are sampled where a request does not say, such as temperature=0.7,top_k=20 (default: as each model's author wants)")
	f.String("addr", "127.0.0.1:8080", "`HOST:PORT` to listen on")
	f.StringArray("api-key", nil, "accept this bearer `KEY`, which other users of this machine can see; may be repeated")
	f.String("api-keys-file", "", "`FILE` of keys to accept, one a line: KEY, or NAME: KEY SETTING..., as lutra key create writes them")
	f.String("debug-addr", "", "`HOST:PORT` for /debug/requests, /debug/logs, /debug/pprof/, /usage and /metrics without keys")
	f.String("jobs", "", "keep files and batches in this `FOLDER`, whose requests are answered beside all others")
	f.Bool("strict", false, "refuse unknown request fields")
	f.String("tls-cert", "", "certificate `FILE` (PEM); serves HTTPS with --tls-key")
	f.String("tls-key", "", "key `FILE` (PEM)")
	f.String("models-dir", "", "serve the GGUF files of this `FOLDER` too, each when a request names it")
	f.String("model-mem", "auto", "memory that all models may take together, such as 12GiB")
	return cmd
}

// warnings returns what a server is to say of itself as it starts. compiles tells whether WebAssembly is
// compiled here.
func warnings(o *server.Options, compiles bool) []string {
	list := o.Warnings()
	if !compiles {
		list = append(list, "verify.tests: "+sandbox.Interpreted)
	}
	return list
}
