package npu

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// RequestsOptions say of what model and prompt the requests to an NPU are counted.
type RequestsOptions struct {
	Model   string
	Get     config.Getter // of models of the hub
	Loading func(model string, done, total int64)
	Hexagon config.Hexagon
	Prompt  int // tokens
}

// DefaultRequestsOptions have an NPU decode.
func DefaultRequestsOptions() RequestsOptions {
	o := RequestsOptions{Hexagon: config.DefaultHexagon(), Prompt: 64}
	o.Hexagon.Decode = "npu"
	return o
}

// mostCounted bounds the tokens of a prompt whose requests are counted.
const mostCounted = 4096

// StepRequests counts a step's requests of an NPU, as a device in Go sees them.
type StepRequests struct {
	Step     string  `json:"step"`
	Requests int64   `json:"requests"`
	Packets  int64   `json:"packets"`
	Written  int64   `json:"bytes_written"`
	Read     int64   `json:"bytes_read"`
	Weights  float64 `json:"weights_on_device"` // share of the model's
}

// RequestsReport is a prompt, and a token behind it.
type RequestsReport []StepRequests

// Print writes a table.
func (r RequestsReport) Print(w io.Writer) error {
	rows := [][]string{{"step", "requests", "packets", "bytes written", "bytes read", "weights on the device"}}
	for _, s := range r {
		n := func(x int64) string { return strconv.FormatInt(x, 10) }
		rows = append(rows, []string{s.Step, n(s.Requests), n(s.Packets), n(s.Written), n(s.Read), strconv.FormatFloat(100*s.Weights, 'f', 0, 64) + " %"})
	}
	return output.Table(w, rows)
}

// load loads the model on a device in Go.
func (o *RequestsOptions) load(ctx context.Context, workers *pool.Pool) (*models.Bundle, error) {
	m, err := config.ModelFlag(o.Model)
	if err == nil {
		err = m.Get(ctx, o.Get)
	}
	if err != nil {
		return nil, err
	}
	m.Backend = hexagon.Kinds()[0]
	opt := models.LoadOptions{Pool: workers, Interrupt: engines.Until(ctx)}
	if o.Loading != nil {
		opt.Progress = func(done, total int64) { o.Loading(m.APIName(), done, total) }
	}
	return engines.LoadBundle(m, o.Hexagon, opt)
}

// Requests counts what a prompt and a token behind it ask of a device in Go.
func Requests(ctx context.Context, o RequestsOptions) (r RequestsReport, err error) {
	if o.Prompt < 1 || o.Prompt > mostCounted {
		return nil, usage.Errorf("--prompt: %d is outside 1 to %d", o.Prompt, mostCounted)
	}
	workers := pool.New(cpu.Cores())
	defer workers.Close()
	bundle, err := o.load(ctx, workers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	m, device := bundle.Model, bundle.Backend().(*hexagon.Backend)
	cfg := m.Config()
	if o.Prompt >= cfg.Context {
		return nil, usage.Errorf("--prompt: %d tokens and one more are beyond the model's context of %d", o.Prompt, cfg.Context)
	}
	const block = 16
	cache, err := kv.New(cfg.KV(), kv.Options{BlockLen: block, Blocks: o.Prompt/block + 2, States: 4})
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	tokens := make([]int32, o.Prompt)
	for i := range tokens {
		tokens[i] = int32((7 + 31*i) % cfg.Vocab)
	}
	seq, share := cache.Open(nil), float64(cfg.Sent)/float64(max(1, cfg.Params))
	defer seq.Release()
	for _, step := range []struct {
		name   string
		tokens []int32
	}{{"prompt of " + strconv.Itoa(o.Prompt), tokens}, {"token", tokens[:1]}} {
		var batch models.Batch
		before, at := device.Work(), seq.Len()
		if err := seq.Grow(len(step.tokens)); err != nil {
			return nil, err
		}
		batch.Add(seq, at, 1, step.tokens...)
		if err := errors.Join(ctx.Err(), m.Forward(&batch, cache)); err != nil {
			return nil, err
		}
		w := device.Work()
		r = append(r, StepRequests{step.name, w.Runs - before.Runs, w.Packets - before.Packets, w.Written - before.Written, w.Read - before.Read, share})
	}
	return r, nil
}

// Load loads a model on a device in Go. The plan then says which layers the device leaves to the host, and why. It also says
// whether a session of each chip maps the memory that a server would open.
func (p *Plan) Load(ctx context.Context, o RequestsOptions) (err error) {
	workers := pool.New(cpu.Cores())
	defer workers.Close()
	bundle, err := o.load(ctx, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	b := bundle.Backend().(*hexagon.Backend)
	if p.Host = hexagon.Reasons(b.Refusals()); p.Host == nil {
		p.Host = []string{"none: the device computes all layers"}
	}
	p.opens(b.Memory())
	return nil
}
