package batcher

import (
	"slices"

	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/kv/offload"
)

// restorer has prefixes that are in files read into the cache, while their sequences wait and all others go on.
//
//	ask ──▶ the store looks ──▶ load: blocks, which the store fills ──▶ finish
//
// Each arrow that leaves the step loop comes back as a post of the sequence.
type restorer struct {
	store   *offload.Store // nil: there are no files
	kv      *kv.Cache
	reading int // sequences whose blocks are being filled
}

// mostRestores bounds how often files are looked for again that could not be read.
const mostRestores = 3

// awaits tells whether s is to wait for what the store finds, which it is asked for first. Locked.
func (r *restorer) awaits(s *Sequence) bool {
	t := &s.task
	if r.store == nil || s.salt != (kv.Salt{}) || t.restore.failed == mostRestores {
		return false
	}
	if t.restore.lookup == nil {
		root, own := s.setup.variant.KVRoot(), t.prefix(s.content.tokens)
		from := r.kv.Peek(root, own)
		if len(own)-from < r.kv.BlockLen() || !r.store.Keeps(root) {
			return false
		}
		t.restore.tokens = slices.Clone(own)
		t.restore.lookup = r.store.Find(root, t.restore.tokens, from, s.post)
	}
	_, done := t.restore.lookup.Result()
	return !done
}

// load has the blocks of s filled, whose cache has what memory had of its prefix, if there are more in files and there
// is room. It reports whether s waits for that.
func (r *restorer) load(s *Sequence) bool {
	t := &s.task
	if t.restore.lookup == nil {
		return false
	}
	n, _ := t.restore.lookup.Result()
	from := t.kv.Len()
	if n <= from || from < t.restore.lookup.From() || t.kv.GrowStored(n-from) != nil {
		t.restore = restore{failed: mostRestores} // and not asked for again, unless the caller changes something
		return false
	}
	t.restore.loading = true
	r.reading++
	t.restore.lookup.Load(t.kv, from)
	return true
}

// finish takes in what was read for s. done: it is no longer being read; all: what was
// found is there. Locked.
func (r *restorer) finish(s *Sequence) (done, all bool) {
	t := &s.task
	if s.err != nil {
		t.restore.lookup.Cancel()
	}
	n, done := t.restore.lookup.Result()
	if !done {
		return false, false
	}
	r.reading--
	tokens := t.restore.tokens
	t.restore = restore{failed: t.restore.failed}
	if all = n == t.kv.Len(); n < t.kv.Len() {
		t.kv.Truncate(n)
		t.restore.failed++
	}
	if all || n > t.demand.Computed {
		t.kv.Restore(tokens[:n])
	}
	t.demand.Computed = t.kv.Len()
	return true, all
}

// busy returns the sequences that are computed or read, those that wait being waiting.
func (r *restorer) busy(active, waiting []*Sequence) []*Sequence {
	if r.reading == 0 {
		return active
	}
	list := slices.Clone(active)
	for _, s := range waiting {
		if s.task.restore.loading {
			list = append(list, s)
		}
	}
	return list
}

// save offers what was computed of s to the store. rests: nothing more comes for now. Locked.
func (t *task) save(s *Sequence, rests bool) {
	st := s.setup.opt.Disk
	if st == nil || s.salt != (kv.Salt{}) || t.kv == nil || t.forked || t.demand.Whole || t.restore.loading {
		return
	}
	n := min(t.kv.Len(), len(s.content.tokens), s.content.cutAt)
	t.chain.Cut(n)
	if n == s.content.prompt { // an equal one is looked for without its last token, and a longer one may lack the answer
		n, rests = n-1, true
	}
	st.Save(&t.chain, t.kv, s.setup.variant.KVRoot(), s.content.tokens[:max(0, n)], rests)
}
