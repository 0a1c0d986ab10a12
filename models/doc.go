// Package models turns batches of tokens into logits and KV entries.
//
//	GGUF file ──Load──▶ Bundle{Model, Tokenizer, Template}
//	Batch (spans of many sequences, end to end) ──Model.Forward(b, kv)──▶ b.Logits
//
// A Batch is ragged: each Span is a run of tokens of one sequence, with no
// padding. The KV cache is paged: a kv.Sequence is a list of blocks that forks share
// and that grow by copy on write. Forward of many spans gives each span the
// same bits as Forward of that span alone.
//
// The package knows nothing of requests, scheduling or CPU features.
package models
