package batcher

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv/offload"
)

// Tile is the number of token lanes of a kernel tile.
const Tile = schedule.Tile

// Options tunes an engine: the `engine:` section of config.yaml.
type Options struct {
	Queue         int           `yaml:"queue"`          // opened sequences whose prompt has not begun; more are ErrBusy
	Sequences     int           `yaml:"sequences"`      // open sequences, forks and idle ones included; more are ErrBusy
	StepTokens    int           `yaml:"step_tokens"`    // most tokens in a step, in whole tiles
	StepRows      int           `yaml:"step_rows"`      // most rows of logits in a step: bounds memory and the streams that advance at once
	StepTime      time.Duration `yaml:"step_time"`      // longest step alongside running streams, if it is more than a tile; 0: no limit
	Context       int           `yaml:"-"`              // longest sequence in tokens; 0: the model's
	Unread        int           `yaml:"unread"`         // tokens a sequence may be ahead of its reader before it is suspended
	FlushInterval time.Duration `yaml:"flush_interval"` // how long a stream's tokens gather, the first and the last excepted; 0: not at all

	// The factors by which interactive streams may become slower on average: due to each prompt that waits, and due
	// to all background work. 0: no bound.
	PrefillSlowdown    float64 `yaml:"prefill_slowdown"`
	BackgroundSlowdown float64 `yaml:"background_slowdown"`

	Speculation Speculation `yaml:"speculation"`

	Drafters []Drafter `json:"-" yaml:"-"` // guess what is speculated on; nil: NewLookup alone
	// OnDraftError is called with the error of a drafter that has failed and is
	// not asked any more; on the engine's goroutine.
	OnDraftError func(err error) `json:"-" yaml:"-"`

	// OnFault is called when the model's backend has failed and its sequences end; on
	// the engine's goroutine.
	OnFault func(err error) `json:"-" yaml:"-"`

	Name string `json:"-" yaml:"-"` // the model's, for errors

	// Control tells which tokens are no text, as those between messages. A prompt leaves checkpoints of a recurrent state
	// where its last messages begin: the next prompt may part there. nil: none are known.
	Control func(id int32) bool `json:"-" yaml:"-"`

	Probe *models.Probe `json:"-" yaml:"-"` // what is read of the states that tokens are sampled from; nil: nothing

	Disk *offload.Store `json:"-" yaml:"-"` // has prefixes of earlier engines, and gets this one's; nil: none

	Arbiter *StepArbiter     `json:"-" yaml:"-"` // shared by the engines on one machine; nil: there is no other
	Pool    *pool.Pool       `json:"-" yaml:"-"` // samples the rows of a step in parallel; nil: one after the other
	Now     func() time.Time `json:"-" yaml:"-"` // clock; nil: time.Now
	OnStep  func(StepStats)  `json:"-" yaml:"-"` // called after each step on the engine's goroutine; must be quick
}

// DefaultOptions returns options that suit a server of a few cores.
func DefaultOptions() Options {
	return Options{
		Queue: 256, Sequences: 1024, StepTokens: 512, StepRows: 128, StepTime: 100 * time.Millisecond, Unread: 64, FlushInterval: 4 * time.Millisecond,
		PrefillSlowdown: 1.45, BackgroundSlowdown: 1.75, Speculation: SpeculateAuto,
	}
}

// Validate reports every fault; each begins with the option's name and a colon.
func (o *Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	within := func(name string, v, lo, hi int) {
		if v < lo || v > hi {
			fault("%s: %d is outside %d..%d", name, v, lo, hi)
		}
	}
	within("queue", o.Queue, 1, mostSequences)
	within("sequences", o.Sequences, 1, mostSequences)
	within("step_tokens", o.StepTokens, Tile, mostStepTokens)
	if o.StepTokens%Tile != 0 {
		fault("step_tokens: %d is not a multiple of %d", o.StepTokens, Tile)
	}
	within("step_rows", o.StepRows, 4, mostStepRows)
	within("context", o.Context, 0, math.MaxInt32)
	within("unread", o.Unread, 1, mostUnread)
	if o.FlushInterval < 0 || o.FlushInterval > time.Second {
		fault("flush_interval: %v is outside 0s..1s", o.FlushInterval)
	}
	if o.StepTime < 0 || o.StepTime > time.Minute {
		fault("step_time: %v is outside 0s..1m", o.StepTime)
	}
	if _, _, err := o.Speculation.limit(); err != nil {
		faults = append(faults, fmt.Errorf("speculation: %w", err))
	}
	for _, s := range []struct {
		name string
		v    float64
	}{{"prefill_slowdown", o.PrefillSlowdown}, {"background_slowdown", o.BackgroundSlowdown}} {
		if s.v != 0 && !(s.v > 1 && s.v <= mostSlowdown) { // NaN is a fault too
			fault("%s: %v is neither 0 nor above 1 and at most %d", s.name, s.v, mostSlowdown)
		}
	}
	return errors.Join(faults...)
}

// The bounds of Options, each far beyond what a machine can use. Memory follows
// the first three: a sequence takes some KB, a token of a step the activations of
// a layer, a row a vocabulary of float32.
const (
	mostSequences  = 1 << 16
	mostStepTokens = 1 << 13
	mostStepRows   = 1 << 12
	mostUnread     = 1 << 20
	mostSlowdown   = 1000
)
