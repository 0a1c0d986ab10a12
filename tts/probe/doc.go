// Package probe judges answers by the hidden states that the generator computed while it wrote them. A Probe is linear in the
// means of those states over an answer's tokens, in the last token's states, and in the tokens' log-probabilities. The model
// computes them anyway, so judging costs a dot product a token and layer, and no second model.
//
//	engine ── readings, a token ──▶ tts.Readings ── sums ──▶ Scorer ── logistic function ──▶ score
//
// Liang et al. 2025, "Hidden-state rewards" (arXiv 2505.12225) and Zhang et al. 2025, "Reasoning
// models know when they're right" (arXiv 2504.05419) read states in such a way.
package probe
