package models

// Pooling is how the hidden states of a text's tokens become its one vector, with
// the numbers that files use. A model that has any embeds texts: its rows of logits
// are hidden states, behind the last norm.
type Pooling uint8

// The poolings.
const (
	PoolingNone  Pooling = iota // the model gives logits or scores
	PoolingMean                 // of all tokens
	PoolingFirst                // the first token's, which files call cls
	PoolingLast                 // the last token's
	poolingRank                 // scores by a head of their own
)

// Generates tells whether rows of logits are those of the vocabulary.
func (c *Config) Generates() bool { return c.Pooling == PoolingNone && c.Outputs == c.Vocab }

// checkCausal refuses models whose tokens see those behind them.
func (l *loader) checkCausal() {
	if l.arch.bidirectional {
		return
	}
	if causal, ok := l.file.Metadata.Bool(l.key("attention.causal")); ok && !causal {
		l.Fail("%s is false: attention to later tokens is not supported for this architecture", l.key("attention.causal"))
	}
}

// embeds makes the model give hidden states.
func (l *loader) embeds(p Pooling) {
	if p == PoolingFirst && !l.arch.bidirectional {
		l.Fail("%s is %d: the first token of this architecture sees no other", l.key("pooling_type"), p)
	}
	l.cfg.Pooling, l.cfg.Outputs = p, l.cfg.Hidden
	l.Ignore("output.weight")
}
