package search

import "github.com/lutra-lm/lutra/tts"

// searchTree holds what a search has found: solution steps, and the candidates
// that they led to.
type searchTree struct {
	*searchInput
	nodes   []tts.Node
	done    []*tts.Candidate
	beams   map[*tts.Candidate]*beam // that made those done
	charged int                      // tokens of nodes
	longest int                      // tokens of the longest one
}

// retire makes b a candidate, complete or not, and gives back what it holds.
func (t *searchTree) retire(b *beam) {
	b.close()
	c := b.cand
	c.Index, c.Node = len(t.done), b.node
	t.read(c, c.Text)
	t.done = append(t.done, c)
	t.beams[c] = b
}

// record puts what b has gained into the tree. Only what stands there is
// charged: what was generated for candidates that the search never came to
// depends on how far they got before they were cancelled.
func (t *searchTree) record(b *beam, step int) {
	c := b.cand
	gained := len(c.IDs) - b.tokens
	t.charged += gained
	b.judge.Charge()
	t.nodes = append(t.nodes, tts.Node{
		Parent: b.node, Step: step, Text: c.Text[b.shown:], Tokens: gained, Score: c.Score, Fate: tts.FateKept,
	})
	t.longest = max(t.longest, gained)
	b.node, b.shown, b.tokens = len(t.nodes)-1, len(c.Text), len(c.IDs)
	if b.begun.IsZero() {
		b.begun = b.seq.Timing().FirstToken
	}
}

// prune closes a beam that has lost against others.
func (t *searchTree) prune(b *beam) {
	t.nodes[b.node].Fate = tts.FatePruned
	b.close()
}
