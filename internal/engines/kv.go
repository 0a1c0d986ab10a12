package engines

import (
	"fmt"
	"math"
	"sort"

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

// blockSizes say what the blocks of a model's cache take, in bytes, with what its predictor keeps of the same tokens.
type blockSizes struct {
	block    int64
	residual int64 // the 8 bits of a block that is written, of types with 4; 0: there are none
	step     int   // residuals of a step's tokens and of some streams
	spread   int   // blocks that there is one residual more for
}

// residualStreams have a residual each, however small a cache is.
const residualStreams = 4

// sizesOf returns the sizes of a model's cache, whose engine computes so many tokens a step. A stream of leastContext
// tokens has a residual of its own. More streams, of fewer tokens, wait for residuals as they do for blocks.
func sizesOf(shape models.Config, opt kv.Options, stepTokens int) blockSizes {
	z := blockSizes{block: kv.BytesPerBlock(shape.KV(), opt), residual: kv.BytesPerResidual(shape.KV(), opt)}
	if shape.Predictor.Layers > 0 {
		z.block += kv.BytesPerBlock(shape.Predictor, opt)
		z.residual += kv.BytesPerResidual(shape.Predictor, opt)
	}
	z.step, z.spread = batcher.StepResiduals(stepTokens, opt.BlockLen)+residualStreams, max(1, leastContext/opt.BlockLen)
	return z
}

// residuals returns how many residuals so many blocks have.
func (z *blockSizes) residuals(blocks int) int {
	if z.residual == 0 {
		return 0
	}
	return min(blocks, z.step+blocks/z.spread)
}

// bytes returns what so many blocks take with their residuals.
func (z *blockSizes) bytes(blocks int) int64 {
	return int64(blocks)*z.block + int64(z.residuals(blocks))*z.residual
}

// blocks returns how many blocks so many bytes hold with their residuals.
func (z *blockSizes) blocks(bytes int64) int {
	return sort.Search(int(min(math.MaxInt32, max(0, bytes)/z.block)), func(n int) bool { return z.bytes(n+1) > bytes })
}

// speculating returns the shape of a model whose engine speculates as it is told to: without that, nothing predicts.
func speculating(shape models.Config, how batcher.Speculation) models.Config {
	if how == batcher.SpeculateOff || how == "" {
		shape.Predictor = kv.Shape{}
	}
	return shape
}

// newKV makes a model's cache of at most share bytes, if the configuration does not set its size. If a
// share holds less than leastContext, the cache may take up to four fifths of room. Its engine computes at most stepTokens
// a step.
func newKV(c config.KV, shape models.Config, stepTokens int, share, room int64) (*kv.Cache, error) {
	opt, err := kvOptions(c, shape)
	if err != nil {
		return nil, err
	}
	sizes, perState := sizesOf(shape, opt, stepTokens), kv.BytesPerState(shape.KV())
	budget, err := c.Bytes()
	if err != nil {
		return nil, err
	}
	most := math.MaxInt32
	if budget == 0 {
		f := Footprint{Measured: models.Measured{Config: shape}, BlockLen: opt.BlockLen, sizes: sizes, State: stateShare * perState}
		if least := f.Least(); share < least {
			if share = room / 5 * 4; share < least {
				return nil, tooSmall(min(shape.Context, leastContext), least, share)
			}
			share = least
		}
		budget = share
		each := (shape.Context + opt.BlockLen - 1) / opt.BlockLen
		if most = contextsKept * each; shape.KV().Layers == 0 { // blocks take next to nothing: states bound how many sequences there are
			most = min(most, max(2*each, tokensKept/opt.BlockLen))
		}
	}
	if perState > 0 {
		opt.States = int(max(1, min(budget/stateShare/perState, statesKept)))
		if budget -= int64(opt.States) * perState; budget < sizes.bytes(1) {
			return nil, fmt.Errorf("kv.memory: %s does not hold one recurrent state (%s) and one block of %d tokens (%s)",
				output.Bytes(budget+int64(opt.States)*perState), output.Bytes(perState), opt.BlockLen, output.Bytes(sizes.bytes(1)))
		}
	}
	if opt.Blocks = min(sizes.blocks(budget), most); opt.Blocks < 1 {
		return nil, fmt.Errorf("kv.memory: %s does not hold one block of %d tokens (%s)", output.Bytes(budget), opt.BlockLen, output.Bytes(sizes.bytes(1)))
	}
	opt.Residuals = sizes.residuals(opt.Blocks)
	return kv.New(shape.KV(), opt)
}
