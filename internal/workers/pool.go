package workers

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/tts"
)

// Pool is the servers that generate candidates for this one.
type Pool struct {
	opt    Options
	log    zerolog.Logger
	places []*members
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// New knows the servers that checked options name, but for the one that listens at an
// address: this one. It asks none yet. The caller closes the pool.
func New(opt Options, listening net.Addr, log zerolog.Logger) *Pool {
	p := &Pool{opt: opt, log: log, lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
	own := newSelf(listening)
	for _, text := range opt.Workers {
		at, err := parsePlace(text)
		if err != nil {
			panic("workers: New of options that were not validated: " + err.Error())
		}
		p.places = append(p.places, &members{place: at, make: func(host string) *worker {
			if own.is(host, at.port) {
				return nil
			}
			return newWorker(at.scheme+"://"+at.address(host), at.url(), at.address(host), opt.Key)
		}})
	}
	return p
}

// Close gives connections back. No search may run any more.
func (p *Pool) Close() {
	for _, w := range p.workers() {
		w.client.CloseIdleConnections()
	}
}

// workers returns all that are known now.
func (p *Pool) workers() (list []*worker) {
	for _, m := range p.places {
		there, err := m.workers(time.Now(), p.lookup)
		if err != nil {
			p.log.Warn().Err(err).Msg("a name of search.workers has no new addresses")
		}
		for _, w := range there {
			if w != nil {
				list = append(list, w)
			}
		}
	}
	return list
}

// ready returns the workers that can be asked, without but, those with the least to do
// first.
func (p *Pool) ready(but []*worker) []*worker {
	type load struct {
		*worker
		jobs int
	}
	var loads []load
	now := time.Now()
	for _, w := range p.workers() {
		if jobs, ready := w.ready(now); ready && !slices.Contains(but, w) {
			loads = append(loads, load{w, jobs})
		}
	}
	slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(a.jobs, b.jobs) })
	list := make([]*worker, len(loads))
	for i := range loads {
		list[i] = loads[i].worker
	}
	return list
}

// Stats counts what has been done, by worker.
func (p *Pool) Stats() map[string]Counts {
	all := map[string]Counts{}
	for _, w := range p.workers() {
		all[w.name] = w.stats(time.Now())
	}
	return all
}

// Source returns the pool for a model of that name and vocabulary size, whose answers from
// the same build carry fingerprint.
func (p *Pool) Source(model, fingerprint string, vocab int) tts.Source {
	return &source{pool: p, model: model, print: fingerprint, vocab: vocab}
}

// source is a Pool for one model.
type source struct {
	pool  *Pool
	model string
	print string
	vocab int
}

// Share implements tts.Source: all that are ready, and this server, get equal parts.
func (s *source) Share(w *tts.Work) int {
	if !fits(w) {
		return 0
	}
	machines := len(s.pool.ready(nil)) + 1
	n := len(w.Jobs)
	return n - (n+machines-1)/machines
}

// Checks implements tts.Source.
func (s *source) Checks(from string) bool {
	if s.pool.opt.Check == 0 {
		return false
	}
	w := s.pool.named(from)
	return w == nil || w.doubted() || rand.Float64() < s.pool.opt.Check
}

// Checked implements tts.Source.
func (s *source) Checked(from string, err error) {
	if w := s.pool.named(from); w != nil {
		w.checked(time.Now(), err)
	}
	if err != nil {
		s.pool.log.Error().Str("worker", from).Str("model", s.model).Err(err).Dur("rests_ms", wrongRest).
			Msg("a worker has generated what this server does not: it is asked for nothing more, and its candidates are done again")
	}
}

// named returns the worker of that name, nil if there is none by now.
func (p *Pool) named(name string) *worker {
	for _, w := range p.workers() {
		if w.name == name {
			return w
		}
	}
	return nil
}
