// Package schedule decides what goes into a step: which sequences, with how many tokens each, alongside which others.
//
// It does no I/O, reads no clock and knows neither sequences nor the KV cache. A plan is a function of the wanted tokens
// and of the measured costs of steps.
package schedule
