// Package recurrent computes linear attention by the gated delta rule, state spaces and short convolutions over
// the recurrent states that package kv keeps, as package attention does over its blocks.
//
//	rows of q, k, v ──convolution──▶ ──norms, gates──▶ ──update of the states──▶ outputs in place of v
//
// A row's bits depend on the rows before it in its sequence alone, whatever spans they came in: see package delta.
package recurrent
