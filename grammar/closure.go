package grammar

import (
	"container/heap"
)

// working is the height of a symbol that is being worked out.
const working = -1

// ruleBytes and sequenceBytes are kept for what is known of a symbol, and for each of its
// sequences.
const (
	ruleBytes     = 144
	sequenceBytes = 40
)

// ruleOf finds out about a symbol. One that begins with itself is an error, but where
// nothing follows it: there it says nothing new, as in x* where x may be empty.
func (g *Grammar) ruleOf(s Symbol) *rule {
	if r, ok := g.memo.rules[s]; ok {
		if r.height == working && g.err == nil {
			g.err = ErrLeft
		}
		return r
	}
	r := &rule{height: working}
	g.memo.rules[s] = r
	g.keep(ruleBytes)
	if r.expr, r.terminal = g.source.Terminal(s); r.terminal {
		r.nullable, r.height = g.arena.Nullable(r.expr), 0
		return r
	}
	r.alternatives = g.source.Alternatives(s)
	height := 0
	for _, sequence := range r.alternatives {
		g.keep(sequenceBytes + 4*len(sequence))
		empty := true
		for i, k := range sequence {
			if !g.work(1) {
				return r
			}
			if k == s && i == len(sequence)-1 {
				empty = false
				break
			}
			x := g.ruleOf(k)
			height = max(height, x.height)
			if empty = x.nullable; !empty {
				break
			}
		}
		r.nullable = r.nullable || empty
	}
	r.height = height + 1
	return r
}

// configBytes is kept for each config.
const configBytes = 24

// pending queues the symbols that may come next, each with the stacks that may follow it, the
// highest first: when one is taken, all that begin with it have been.
type pending struct {
	at   map[Symbol]*expected
	heap []*expected
}

type expected struct {
	*rule
	symbol Symbol
	rests  []*stack
}

func (p *pending) Len() int           { return len(p.heap) }
func (p *pending) Less(i, j int) bool { return p.heap[i].height > p.heap[j].height }
func (p *pending) Swap(i, j int)      { p.heap[i], p.heap[j] = p.heap[j], p.heap[i] }
func (p *pending) Push(x any)         { p.heap = append(p.heap, x.(*expected)) }
func (p *pending) Pop() any {
	x := p.heap[len(p.heap)-1]
	p.heap = p.heap[:len(p.heap)-1]
	return x
}

func (p *pending) add(s Symbol, r *rule, rest *stack) {
	e, ok := p.at[s]
	if !ok {
		e = &expected{rule: r, symbol: s}
		p.at[s] = e
		heap.Push(p, e)
	}
	e.rests = append(e.rests, rest)
}

// closure finds the terminals that may come next above s. Each symbol is looked at once, with all that may follow it. That
// takes as much work as there are rules and stacks, however many ways there are to write a text.
func (g *Grammar) closure(s *stack) *closure {
	if s.closed != nil {
		return s.closed
	}
	c := &closure{}
	p := &pending{at: map[Symbol]*expected{}}
	g.tops(s, c, p)
	var found []config
	for p.Len() > 0 && g.err == nil {
		x := heap.Pop(p).(*expected)
		rest := g.join(x.rests)
		if x.terminal {
			if g.arena.Alive(x.expr) && !g.arena.Ends(x.expr) {
				found = append(found, config{x.expr, rest})
			}
			continue
		}
		for _, sequence := range x.alternatives {
			g.begin(x.symbol, sequence, rest, p)
		}
	}
	c.configs = g.merge(found)
	if g.fault() == nil {
		g.keep(configBytes * len(c.configs))
		s.closed = c
	}
	return c
}

// tops adds the symbols on top of stacks, and those below symbols that may be empty.
func (g *Grammar) tops(s *stack, c *closure, p *pending) {
	var seen map[*stack]bool // where several are looked at
	for todo := []*stack{s}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		c.accepts = c.accepts || s.empty
		for _, f := range s.frames {
			if !g.work(1) {
				return
			}
			r := g.ruleOf(f.symbol)
			p.add(f.symbol, r, f.rest)
			if r.nullable && !seen[f.rest] {
				if seen == nil {
					seen = map[*stack]bool{}
				}
				seen[f.rest] = true
				todo = append(todo, f.rest)
			}
		}
	}
}

// begin adds the symbols that a sequence of a rule may begin with.
func (g *Grammar) begin(of Symbol, sequence []Symbol, rest *stack, p *pending) {
	n := 0 // symbols that it may begin with
	for n < len(sequence) {
		if n++; !g.ruleOf(sequence[n-1]).nullable {
			break
		}
	}
	if !g.work(len(sequence)) {
		return
	}
	if n > 0 && n == len(sequence) && sequence[n-1] == of { // nothing new
		n--
	}
	for i := len(sequence) - 1; i >= 0 && g.err == nil; i-- {
		if i < n {
			p.add(sequence[i], g.ruleOf(sequence[i]), rest)
		}
		if i > 0 {
			rest = g.push(sequence[i], rest)
		}
	}
}

// merge joins what follows equal expressions. It changes the order of configs, which
// become its result.
func (g *Grammar) merge(configs []config) []config {
	sortConfigs(configs)
	out := configs[:0]
	for i := 0; i < len(configs); {
		j := i + 1
		for j < len(configs) && configs[j].expr == configs[i].expr {
			j++
		}
		c := configs[i]
		if j > i+1 {
			rests := make([]*stack, 0, j-i)
			for _, k := range configs[i:j] {
				rests = append(rests, k.rest)
			}
			c.rest = g.join(rests)
		}
		out = append(out, c)
		i = j
	}
	return out
}
