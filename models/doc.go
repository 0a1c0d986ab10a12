// Package models turns batches of tokens into logits and KV entries.
//
//	GGUF file ──Load──▶ Bundle{Model, Tokenizer, Template}
//	Batch (spans of many sequences, end to end) ──Model.Forward(b, kv)──▶ b.Logits
//
// A Batch is ragged: each Span is a run of tokens of one sequence, with no
// padding. Forward of many spans gives each span the same bits as Forward of that
// span alone.
//
// Each file calls only those below it:
//
//	load                                      a file becomes a Bundle
//	executor                                  a batch becomes shards of rows, run by workers
//	decoder                                   the graph: layers and what they add up to
//	attention, delta, ffn, mixture, head ...  what a layer is, and how it is loaded
//	tensors                                   products of the graph, found in a file
//	ops, shard                                operations on rows, and their memory
//	spec, arch, model                         a model as its header describes it, architectures, shapes
//
// An architecture is a row of arch.go. Metadata and tensors are read by package load; keys, values and
// recurrent states are package kv, what reads them is packages attention and recurrent.
// The package knows nothing of requests, scheduling or CPU features.
package models
