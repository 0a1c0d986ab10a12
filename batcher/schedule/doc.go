// Package schedule decides what goes into a step: which sequences, with how
// many tokens each, alongside which others.
//
// It does no I/O, reads no clock and knows neither sequences nor the KV cache,
// so plans are a function of what is wanted and of what steps are measured to cost.
package schedule
