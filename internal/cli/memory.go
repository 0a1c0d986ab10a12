package cli

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// kvShare: that part of the free memory is what "auto" gives to all caches
// together.
const kvShare = 4

// contextsKept bounds what "auto" KV memory grows to: this many full contexts
// at once are more than a CPU serves.
const contextsKept = 64

// newKV makes a model's cache, of share bytes at most where the configuration
// leaves its size open.
func newKV(c KVConfig, shape models.Config, share int64) (*kv.Cache, error) {
	kind, err := kv.ParseType(c.Type)
	if err != nil {
		return nil, err
	}
	opt := kv.Options{Type: kind, BlockLen: c.Block, Cold: !c.Prefix}
	perBlock := kv.BytesPerBlock(shape.KV(), opt)
	budget, err := c.bytes()
	if err != nil {
		return nil, err
	}
	most := int64(math.MaxInt32)
	if budget == 0 {
		budget = share
		most = contextsKept * int64((shape.Context+opt.BlockLen-1)/opt.BlockLen)
	}
	if opt.Blocks = int(min(budget/perBlock, most)); opt.Blocks < 1 {
		return nil, fmt.Errorf("kv.memory: %s do not hold one block of %d tokens (%s)", output.Bytes(budget), opt.BlockLen, output.Bytes(perBlock))
	}
	return kv.New(shape.KV(), opt)
}

// bytes is the configured KV budget of one model, 0 for "auto".
func (c KVConfig) bytes() (int64, error) {
	if c.Memory == "auto" || c.Memory == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(c.Memory)
	if err != nil {
		return 0, fmt.Errorf("%q is no size such as 512MiB or 2GiB", c.Memory)
	}
	if n < 1<<20 || n > 1<<50 {
		return 0, fmt.Errorf("%q is outside 1MiB..1PiB", c.Memory)
	}
	return int64(n), nil
}

// checkMemory tells whether a machine of so much memory (0: unknown) can hold
// all caches.
func (c *Config) checkMemory(physical int64) error {
	each, err := c.KV.bytes()
	if err != nil {
		return err
	}
	if n := int64(c.caches()); physical > 0 && each > physical/max(1, n) {
		return fmt.Errorf("%d caches of %s are more than this machine's memory of %s", n, output.Bytes(each), output.Bytes(physical))
	}
	return nil
}

// caches is the number of KV caches that models, verifiers and drafts have.
func (c *Config) caches() int {
	n := len(c.Models) + len(c.Verifiers)
	for _, m := range c.Models {
		if _, ok := c.draftOf(m); ok {
			n++
		}
	}
	return n
}
