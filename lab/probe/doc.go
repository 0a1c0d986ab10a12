// Package probe trains probes (tts/probe): the model answers problems with known answers, or a journal
// of lutra-lab eval has its answers, and logistic regression finds what in its states tells right answers
// from wrong ones.
//
//	problems ─▶ Sample ─┐
//	journal ─▶ Recall ──┴▶ answers ─▶ Read ─▶ features ─▶ Fit ─▶ probe
//	                                                       └────▶ Report, on problems held out
package probe
