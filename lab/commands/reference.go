package commands

import (
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models/weights"
)

// referenceFlags define the flags of commands that read a model's logits without an
// engine. context is the default of --context; a model with a shorter one of its own
// uses that.
func referenceFlags(f *pflag.FlagSet, r *reference.Options, context int) {
	cpuFlags(f, r, context)
	cli.WordVar(f, &r.Backend, "backend", config.CPU, config.Backends(), "where matrices and attention are computed")
	d := config.DefaultHexagon()
	r.Hexagon = d
	f.StringVar(&r.Hexagon.Plan, "npu-plan", "", "with a Hexagon backend, the plan of a model's experts: `FILE` of lutra-lab npu plan --moe --json (default: equal groups)")
	cli.WordVar(f, &r.Hexagon.Placement, "placement", d.Placement, hexagon.Placements(), "with a Hexagon backend, what of a model with experts the NPU computes")
}

// cpuFlags defines those that are of no backend.
func cpuFlags(f *pflag.FlagSet, r *reference.Options, context int) {
	f.StringVar(&r.Model, "model", config.DefaultModels()[0].Embedded, "GGUF `FILE` or a name that lutra serve takes")
	cli.WordVar(f, &r.Packing, "packing", "auto", weights.Packings(), "run-time packing of ternary weights")
	cli.WordVar(f, &r.KVType, "kv-type", "f16", append(config.KVTypes(), "f32"), "KV cache format")
	f.BoolVar(&r.Exact, "exact", false, "float32 weights and activations (slow; the reference path)")
	cli.RopeFlags(f, &r.Rope)
	f.IntVar(&r.Threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVar(&r.Context, "context", context, "longest sequence in `TOKENS`, 0 for the model's own; it selects among rope factors for short and for long contexts")
}
