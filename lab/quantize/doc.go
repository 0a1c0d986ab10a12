// Package quantize stores the weights of models in fewer bits.
//
//	File + Options ──NewPlan──▶ Plan: a type each tensor ──Write──▶ file, a Result each tensor
//	      importances ─────┘            rows ──Encode──▶ blocks
//
// Types and bytes are those of llama.cpp: rules that give tensors types are rows of
// fileTypes, and encoders take the float32 operations of ggml-quants.c in their order.
// testdata has the digests that hold them, and the programs that made these.
//
// What is read is assumed hostile as everywhere: what has no quantised form is refused by
// the tensor's name. A Plan holds a few megabytes a core however large the model is.
//
// The package knows tensors by their names and shapes; how models compute it does not know.
package quantize
