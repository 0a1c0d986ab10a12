// Package kv is the KV cache: what a model remembers of the tokens it has seen.
//
//	Cache ──Open──▶ Sequence ──Grow──▶ blocks to write ──Seal──▶ found by later sequences
//
// It is paged: a Sequence is a list of blocks, which forks share and which are
// copied when one of them writes. Attention reads a Layer's blocks by number. The
// cache knows a model's Shape alone.
package kv
