package engines

import (
	"fmt"
	"os"
	"sort"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/server/registry"
)

// Footprint is the memory that a model takes, in bytes.
type Footprint struct {
	models.Measured         // Bytes: of all weights
	Fixed           int64   // of Bytes, what cannot stay in the file
	KV              kv.Type // of keys and values
	BlockLen        int     // tokens of a block
	State           int64   // a sequence's recurrent state; 0: there is none
	Buffers         int64   // of a step: activations and logits
	sizes           blockSizes
}

// Measure finds out the memory that a model takes without loading it. It fails for files that cannot
// be loaded either.
func Measure(cfg *config.Config, m config.Model) (f Footprint, err error) {
	file, err := m.Open()
	if err != nil {
		return f, err
	}
	defer file.Close()
	if f.Measured, err = models.Measure(file, models.LoadOptions{Packing: m.Packing, Context: m.Context, Metadata: m.Overrides()}); err != nil {
		return f, err
	}
	experts, err := cfg.Experts.Bytes()
	if err != nil {
		return f, fmt.Errorf("experts.memory: %w", err)
	}
	f.Fixed = f.Bytes
	if f.ExpertBytes > 0 {
		if experts == 0 {
			experts = f.ExpertBytes / leastExperts
		}
		f.Fixed -= f.ExpertBytes - min(f.ExpertBytes, experts)
	}
	opt, err := kvOptions(cfg.KV, f.Config)
	if err != nil {
		return f, err
	}
	f.KV, f.BlockLen, f.State = opt.Type, opt.BlockLen, kv.BytesPerState(f.Config.KV())
	f.sizes = sizesOf(speculating(f.Config, cfg.Engine.Speculation), opt, cfg.Engine.StepTokens)
	f.Buffers = buffers(f.Config, &cfg.Engine.Options)
	return f, nil
}

// leastExperts is the part of the experts, one in so many, that is in memory at least where
// experts.memory does not say how many are.
const leastExperts = 8

// buffers returns about what an engine's steps need: activations, logits, and the words of the
// tokenizer.
func buffers(c models.Config, o *batcher.Options) int64 {
	const word = 150 // bytes of a token of the vocabulary
	row := int64(4*c.Hidden + (c.Heads+2*c.KVHeads)*c.HeadDim + 3*max(c.FFN, c.ExpertsUsed*c.ExpertFFN))
	return int64(batcher.GuessesMost)*int64(c.GuessBytes) + 4*int64(o.StepTokens)*row + 4*int64(o.StepRows)*int64(c.Outputs) + word*int64(c.Vocab)
}

// Cache returns what streams of so many tokens each take.
func (f *Footprint) Cache(tokens, streams int) int64 {
	return f.sizes.bytes(streams*((tokens+f.BlockLen-1)/f.BlockLen)) + int64(streams)*f.State
}

// Tokens returns how many tokens each of the streams may have in so many bytes, at most the
// model's context.
func (f *Footprint) Tokens(bytes int64, streams int) int {
	streams = max(1, streams)
	return min(f.sizes.blocks(bytes-int64(streams)*f.State)/streams*f.BlockLen, f.Context)
}

// Streams returns how many streams of so many tokens each fit in so many bytes.
func (f *Footprint) Streams(bytes int64, tokens int) int {
	each := int64((tokens+f.BlockLen-1)/f.BlockLen)*f.sizes.block + f.State // without residuals
	return sort.Search(int(max(0, bytes)/max(1, each)), func(n int) bool { return f.Cache(tokens, n+1) > bytes })
}

// leastContext is the least number of tokens that a cache holds, of models with a longer context.
const leastContext = 2048

// Least returns the least cache that the model is served with where kv.memory is auto.
func (f *Footprint) Least() int64 { return f.Cache(min(f.Context, leastContext), 1) }

// About describes a model as far as its file shows.
func About(m config.Model) (a registry.About) {
	if m.Path != "" {
		if info, err := os.Stat(m.Path); err == nil {
			a.Modified = info.ModTime()
		}
		a.Size = sizeOf(m.Path)
	}
	file, err := m.Open()
	if err != nil { // it says so to whoever asks
		return a
	}
	defer file.Close()
	a.Quantization = file.FileType()
	c, err := models.Describe(file, models.LoadOptions{Context: m.Context, Metadata: m.Overrides()})
	if err != nil {
		return a
	}
	a.Arch, a.Params, a.Context, a.Task = c.Arch, c.Params, c.Context, registry.TaskGenerate
	if c.Pooling != models.PoolingNone {
		a.Task = registry.TaskEmbed
	} else if !c.Generates() {
		a.Task = registry.TaskReward
	}
	return a
}

// Fitting returns the models of a configuration that are loaded at the start: the first, those
// that are pinned, and others in their order as long as there is room. All of one whose file
// cannot be measured, for loading says what is wrong.
func Fitting(cfg *config.Config) (list []config.Model, err error) {
	limit, err := cfg.Loading.Bytes()
	if err != nil || len(cfg.Models) < 2 {
		return cfg.Models, err
	}
	room := memory.ForWeights(0)
	if limit > 0 {
		room = min(room, limit)
	}
	l := &loader{cfg: *cfg, shelf: newShelf()}
	for _, v := range cfg.Verifiers {
		if need, err := l.Need(v.Model()); err == nil {
			room -= need
		}
	}
	for i, m := range cfg.Models {
		stays := i == 0 || m.Pin
		need, err := l.Need(m)
		if err == nil && !stays && need > room {
			continue
		}
		room -= need
		list = append(list, m)
	}
	return list, nil
}

// Need returns how many bytes more would be taken if a model of the configuration were loaded:
// nothing for weights that are in memory already.
func (l *loader) Need(m config.Model) (bytes int64, err error) {
	m.Backend = l.cfg.BackendOf(m)
	list := []config.Model{m}
	if d, ok := l.cfg.DraftOf(m); ok {
		d.Backend = m.Backend
		list = append(list, d)
	}
	for _, a := range m.Adapters {
		bytes += adapterSize(a)
	}
	for _, m := range list {
		f, err := Measure(&l.cfg, m)
		if err != nil {
			return 0, err
		}
		each, err := l.cfg.KV.Bytes()
		if err != nil {
			return 0, err
		}
		if each == 0 {
			each = f.Least()
		}
		if bytes += each + f.Buffers; !l.shelf.has(KeyOf(m), m.Context) {
			bytes += f.Fixed
		}
	}
	return bytes, nil
}

// Taken returns how many bytes the models take: weights, caches and buffers.
func (r *Runtime) Taken() (bytes int64) {
	r.shelf.each(func(b *models.Bundle) { bytes += b.Model.Config().Bytes })
	for _, h := range r.All() {
		bytes += h.caching() + h.buffers + h.adapting()
	}
	return bytes
}

// caching returns what the caches of a model take once they are full.
func (h *Host) caching() (bytes int64) {
	for _, c := range h.caches {
		bytes += c.Bytes()
	}
	return bytes
}

// Bytes returns what would be free without the model: of weights that others use too, nothing.
func (r *Runtime) Bytes(h *Host) int64 {
	bytes := h.caching() + h.buffers + h.adapting()
	for _, b := range h.bundles() {
		if r.shelf.users(b) == 1 {
			bytes += b.Model.Config().Bytes
		}
	}
	return bytes
}

// Room returns how many bytes more models may take: up to the limit, or four fifths of what is
// free once caches and experts have taken what they were promised.
func (r *Runtime) Room() int64 {
	promised := r.promised()
	for _, h := range r.All() {
		for _, c := range h.caches {
			promised += c.Untouched()
		}
	}
	room := r.room(promised)
	if limit, err := r.cfg.Loading.Bytes(); err == nil && limit > 0 {
		room = min(room, limit-r.Taken())
	}
	return max(0, room)
}

// tooSmall says that a cache does not hold what it must.
func tooSmall(tokens int, need, room int64) error {
	return fmt.Errorf("kv.memory: a context of %d tokens needs %s, and %s is free; see lutra info --fit", tokens, output.Bytes(need), output.Bytes(room))
}
