// Package recurrent is what linear attention by the gated delta rule does with the
// recurrent states that package kv keeps, as package attention does with its blocks.
//
//	rows of q, k, v ──convolution──▶ ──norms, gates──▶ ──update of the states──▶ outputs in place of v
//
// The rows of a span are taken one after the other: the one form for prompts and for
// single tokens, so that a row's bits depend on the rows before it alone.
package recurrent
