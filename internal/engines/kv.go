package engines

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// kvShare is the part of the free memory, one in so many, that "auto" gives to all
// caches together.
const kvShare = 4

// contextsKept bounds "auto" KV memory: a CPU serves fewer full contexts at once.
const contextsKept = 64

// tokensKept bounds "auto" KV memory of models that have no keys and values, in tokens of all sequences.
const tokensKept = 1 << 20

// stateShare is the part of a cache's memory, one in so many, that goes to recurrent states. Each
// running sequence has one; the others are checkpoints of prefixes. There are at most statesKept.
const (
	stateShare = 2
	statesKept = 512
)

// kvOptions returns the number format of a model's cache, and the tokens of a block.
func kvOptions(c config.KV, shape models.Config) (kv.Options, error) {
	kind, err := kv.ParseType(c.Type)
	if shape.Pooling != models.PoolingNone { // halves would show in vectors, and little is kept
		kind = kv.F32
	}
	if err == nil {
		if err = kind.Check(shape.KV()); err != nil {
			err = fmt.Errorf("kv.type: %w", err)
		}
	}
	return kv.Options{Type: kind, BlockLen: c.Block, Cold: !c.Prefix}, err
}

// blockBytes returns the memory of a block of a model's cache, with what its predictor keeps of the same tokens.
func blockBytes(shape models.Config, opt kv.Options) int64 {
	bytes := kv.BytesPerBlock(shape.KV(), opt)
	if shape.Predictor.Layers > 0 {
		bytes += kv.BytesPerBlock(shape.Predictor, opt)
	}
	return bytes
}

// speculating returns the shape of a model whose engine speculates as it is told to: without that, nothing predicts.
func speculating(shape models.Config, how batcher.Speculation) models.Config {
	if how == batcher.SpeculateOff || how == "" {
		shape.Predictor = kv.Shape{}
	}
	return shape
}

// newKV makes a model's cache of at most share bytes, if the configuration does not set its size. If a
// share holds less than leastContext, the cache may take up to four fifths of room.
func newKV(c config.KV, shape models.Config, share, room int64) (*kv.Cache, error) {
	opt, err := kvOptions(c, shape)
	if err != nil {
		return nil, err
	}
	perBlock, perState := blockBytes(shape, opt), kv.BytesPerState(shape.KV())
	budget, err := c.Bytes()
	if err != nil {
		return nil, err
	}
	most := int64(math.MaxInt32)
	if budget == 0 {
		f := Footprint{Measured: models.Measured{Config: shape}, BlockLen: opt.BlockLen, Block: perBlock, State: stateShare * perState}
		if least := f.Least(); share < least {
			if share = room / 5 * 4; share < least {
				return nil, tooSmall(min(shape.Context, leastContext), least, share)
			}
			share = least
		}
		budget = share
		each := int64((shape.Context + opt.BlockLen - 1) / opt.BlockLen)
		if most = contextsKept * each; shape.KV().Layers == 0 { // blocks take next to nothing: states bound how many sequences there are
			most = min(most, max(2*each, int64(tokensKept/opt.BlockLen)))
		}
	}
	if perState > 0 {
		opt.States = int(max(1, min(budget/stateShare/perState, statesKept)))
		if budget -= int64(opt.States) * perState; budget < perBlock {
			return nil, fmt.Errorf("kv.memory: %s does not hold one recurrent state (%s) and one block of %d tokens (%s)",
				output.Bytes(budget+int64(opt.States)*perState), output.Bytes(perState), opt.BlockLen, output.Bytes(perBlock))
		}
	}
	if opt.Blocks = int(min(budget/perBlock, most)); opt.Blocks < 1 {
		return nil, fmt.Errorf("kv.memory: %s does not hold one block of %d tokens (%s)", output.Bytes(budget), opt.BlockLen, output.Bytes(perBlock))
	}
	return kv.New(shape.KV(), opt)
}
