package models

import (
	"errors"

	"github.com/lutra-lm/lutra/models/kv"
)

// ErrNotFinite says that a model made of its input what is infinite or NaN. Its weights are
// finite, as loading checks: they are damaged, or too large for float32 activations.
var ErrNotFinite = errors.New("models: the model computes numbers that are infinite or NaN")

// CheckFinite reports ErrNotFinite for a row of what a model computed, unless all numbers
// of row are finite.
func CheckFinite(row []float32) error {
	for _, x := range row {
		if x-x != 0 {
			return ErrNotFinite
		}
	}
	return nil
}

// Model computes one step. It is driven by one goroutine at a time.
type Model interface {
	Config() Config
	// Forward runs b's tokens, writes their keys and values into the span's
	// kv.Sequence (already grown to hold them) and fills b.Logits. Of a model with
	// recurrent layers it moves the sequence's state on, so that spans must follow
	// one another.
	Forward(b *Batch, cache *kv.Cache) error
	// TakeBack undoes guesses of the batch computed last, whose spans keep their first keep[i] tokens: recurrent states
	// are then as if the others had never been computed. The others are no more than kv.Sequence.Guesses. Positions are
	// dropped by kv.Sequence.Truncate.
	TakeBack(b *Batch, keep []int)
}

// Config describes a loaded model's shape.
type Config struct {
	Arch          string // general.architecture: "llama", ...
	Name          string // general.name
	Layers        int
	Hidden        int
	FFN           int
	Vocab         int
	Context       int     // longest sequence the model was made for, in tokens
	Outputs       int     // width of a row of logits: Vocab, or the number of scores of a reward model, or Hidden
	Pooling       Pooling // of a model that embeds texts
	NormEps       float32
	Bidirectional bool // tokens attend to later ones too: a sequence is computed in one step
	LayerInputs   int  // numbers that each layer has of a token besides its embedding

	AttentionShape
	ExpertShape
	StateShape
	Footprint
}

// AttentionShape describes the layers that attend.
type AttentionShape struct {
	Heads, KVHeads, HeadDim int
	Others                  kv.Others // layers with keys and values that have other heads
	SharedLayers            int       // of Layers, the last: they read the keys and values of layers before them
}

// ExpertShape describes the mixtures of experts.
type ExpertShape struct {
	Experts     int // of a layer; 0: layers have one feed-forward
	ExpertsUsed int // of Experts: how many a row takes
	ExpertFFN   int // width of an expert
	DenseLayers int // of Layers, the first: they have feed-forwards where the others have mixtures
}

// StateShape describes the layers that do not attend.
type StateShape struct {
	RecurrentLayers int      // of Layers: they have a recurrent state in place of keys and values
	State           int      // numbers of a sequence's recurrent state, all of these layers together
	GuessBytes      int      // of a guess until it is known to be right, so that the state can go back; 0: it cannot
	StatelessLayers int      // of Layers: they have neither keys and values nor a state
	Predictor       kv.Shape // what a cache for the layer that predicts a token further ahead must have room for; zero: there is none
}

// Footprint describes the weights.
type Footprint struct {
	Params   int64  // number of weights
	Bytes    int64  // of packed weights in memory
	Packings string // what the layers' matrices run as, e.g. "I2"
	Sent     int64  // of Params: what a backend other than the CPU multiplies
}

// Batch is the work of one step: tokens of many sequences end to end.
type Batch struct {
	Tokens    []int32 // [T]
	Positions []int32 // [T] position of each token in its sequence
	Spans     []Span
	Logits    []float32 // [sum of Spans.Out][Config.Outputs], filled by Forward, in span order
	Probe     *Probe    // what is read of the rows that want logits; nil: nothing
	Readings  []float32 // [sum of Spans.Out][Probe.Width], filled by Forward with Logits
	// Before, of a predictor, are hidden states of the tokens before, [T][Hidden]. With KeepStates Forward fills States,
	// [T][Hidden], with the hidden states after the last norm.
	Before, States []float32
	KeepStates     bool
}

// Span is a run of consecutive tokens of one sequence within a Batch.
type Span struct {
	Start, End int // half-open range of Batch.Tokens
	KV         *kv.Sequence
	Out        int      // how many of the last tokens want logits: 0 prefill chunk, 1 decode, k verify
	Variant    *Variant // what computes it; nil: the model as it is
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tokens, b.Positions, b.Spans, b.Logits = b.Tokens[:0], b.Positions[:0], b.Spans[:0], b.Logits[:0]
	b.Probe, b.Readings = nil, b.Readings[:0]
	b.Before, b.States, b.KeepStates = b.Before[:0], b.States[:0], false
}

// Add appends a span of tokens at positions pos, pos+1, ...
func (b *Batch) Add(seq *kv.Sequence, pos int, out int, tokens ...int32) {
	start := len(b.Tokens)
	b.Tokens = append(b.Tokens, tokens...)
	for i := range tokens {
		b.Positions = append(b.Positions, int32(pos+i))
	}
	b.Spans = append(b.Spans, Span{Start: start, End: len(b.Tokens), KV: seq, Out: out})
}

// Outputs returns the number of logit rows the batch asks for.
func (b *Batch) Outputs() int {
	n := 0
	for i := range b.Spans {
		n += b.Spans[i].Out
	}
	return n
}

// Pooling makes one vector of the hidden states of a text's tokens; its numbers are the files' own. A model with
// a pooling embeds texts: its rows of logits are hidden states, after the last norm.
type Pooling uint8

// The poolings.
const (
	PoolingNone  Pooling = iota // the model gives logits or scores
	PoolingMean                 // of all tokens
	PoolingFirst                // the first token's, which files call cls
	PoolingLast                 // the last token's
	poolingRank                 // scores by a head of their own
)

// Generates tells whether rows of logits have a number for each token of the vocabulary.
func (c *Config) Generates() bool { return c.Pooling == PoolingNone && c.Outputs == c.Vocab }

// KV returns what a KV cache for the model must have room for.
func (c Config) KV() kv.Shape {
	return kv.Shape{Layers: c.Layers - c.RecurrentLayers - c.StatelessLayers - c.SharedLayers - c.Others.Layers, Heads: c.KVHeads, HeadDim: c.HeadDim, State: c.State, Others: c.Others}
}
