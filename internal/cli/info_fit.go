package cli

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// fitFlags say what a model is to do in this machine's memory.
type fitFlags struct {
	fit     bool
	context int
	streams int
	kv      string
}

func (a *fitFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&a.fit, "fit", false, "show what serving the model takes of this machine's memory, and what would fit")
	f.IntVar(&a.context, "context", 0, "with --fit, tokens of a stream (default: the model's context)")
	f.IntVar(&a.streams, "streams", 1, "with --fit, streams at once")
	WordVar(f, &a.kv, "kv-type", "f16", config.KVTypes(), "with --fit, KV cache format")
}

// mostStreams bounds --streams.
const mostStreams = 1 << 16

// fitted is the object that `info --fit --json` prints, with sizes in bytes.
type fitted struct {
	Model   string `json:"model"`
	Context int    `json:"context"` // tokens of a stream
	Streams int    `json:"streams"`
	KVType  string `json:"kv_type"`

	Weights int64 `json:"weights"`
	Experts int64 `json:"experts,omitempty"` // of the weights; they may stay in the file
	KV      int64 `json:"kv"`
	States  int64 `json:"states,omitempty"` // of recurrent layers
	Buffers int64 `json:"buffers"`
	Total   int64 `json:"total"`

	Memory int64 `json:"memory"` // of the machine or the container; 0: the system does not say
	Free   int64 `json:"free"`
	Fits   bool  `json:"fits"`

	MostContext int `json:"most_context"` // tokens that as many streams may have
	MostStreams int `json:"most_streams"` // of so many tokens
}

// measure finds out what a model takes, on a machine with so much memory, of which some is free.
func (a *fitFlags) measure(name string, m config.Model, physical, free int64) (*fitted, error) {
	cfg := config.Default()
	cfg.KV.Type = a.kv
	f, err := engines.Measure(&cfg, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if a.context < 0 || a.context > f.Context {
		return nil, usage.Errorf("--context: %d is outside 1..%d, the model's context", a.context, f.Context)
	}
	if a.streams < 1 || a.streams > mostStreams {
		return nil, usage.Errorf("--streams: %d is outside 1..%d", a.streams, mostStreams)
	}
	t := &fitted{Model: name, Context: cmp.Or(a.context, f.Context), Streams: a.streams, KVType: f.KV.String(),
		Weights: f.Bytes, Experts: f.ExpertBytes, Buffers: f.Buffers, Memory: physical, Free: free}
	t.States = int64(t.Streams) * f.State
	t.KV = f.Cache(t.Context, t.Streams) - t.States
	t.Total = t.Weights + t.KV + t.States + t.Buffers
	t.Fits = t.Total <= free
	left := free - t.Weights - t.Buffers
	t.MostContext, t.MostStreams = f.Tokens(left, t.Streams), f.Streams(left, t.Context)
	return t, nil
}

func (t *fitted) print(w io.Writer) error {
	rows := [][]string{{"memory", "size", ""}, {"weights", output.Bytes(t.Weights), ""}}
	if t.Experts > 0 {
		rows[1][2] = output.Bytes(t.Experts) + " of them experts, which may stay in the file (experts.memory)"
	}
	rows = append(rows, []string{"keys and values", output.Bytes(t.KV), fmt.Sprintf("%s, %d × %d tokens", t.KVType, t.Streams, t.Context)})
	if t.States > 0 {
		rows = append(rows, []string{"recurrent states", output.Bytes(t.States), fmt.Sprintf("of %d streams", t.Streams)})
	}
	rows = append(rows, []string{"buffers", output.Bytes(t.Buffers), "of a step, and the vocabulary"}, []string{"together", output.Bytes(t.Total), ""})
	of := ""
	if t.Memory > 0 {
		of = "of " + output.Bytes(t.Memory)
	}
	rows = append(rows, []string{"free", output.Bytes(t.Free), of})
	if err := output.Table(w, rows); err != nil {
		return err
	}
	word := "It does not fit"
	if t.Fits {
		word = "It fits"
	}
	_, err := fmt.Fprintf(w, "\n%s. Largest context of %d streams: %d tokens. Most streams of %d tokens: %d.\n", word, t.Streams, t.MostContext, t.Context, t.MostStreams)
	return err
}

// run prints what a model of this machine takes.
func (a *fitFlags) run(w io.Writer, name string, m config.Model, asJSON bool) error {
	t, err := a.measure(name, m, memory.Physical(), memory.Free())
	switch {
	case err != nil:
		return err
	case asJSON:
		return output.JSON(w, t)
	}
	return t.print(w)
}
