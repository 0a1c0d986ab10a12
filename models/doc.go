// Package models turns batches of tokens into logits and KV entries.
//
//	GGUF file ──Load──▶ Bundle{Model, Tokenizer, Template}
//	Batch (spans of many sequences, end to end) ──Model.Forward(b, kv)──▶ b.Logits
//
// A Batch is ragged: each Span is a run of tokens of one sequence, with no
// padding. Forward of many spans gives each span the same bits as Forward of that
// span alone.
//
// An architecture is a row of arch.go. A layer is self-attention (attention.go) or a
// gated delta net (delta.go), and a feed-forward (ffn.go); decoder.go is the graph of
// them, and an executor (executor.go, shard.go) runs it. Loading is load.go and the
// weights of package weights; keys, values and recurrent states are package kv, what
// reads them is packages attention and recurrent. The package knows nothing of
// requests, scheduling or CPU features.
package models
