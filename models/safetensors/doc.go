// Package safetensors reads the tensors of a model in safetensors files, one or several with
// an index, as Hugging Face's libraries write them.
//
//	length | {"NAME": {"dtype", "shape", "data_offsets"} ...} | data ...
//	 (8)   └──────────────────── header ────────────────────┘
//
// Headers are read, data stays in the files. Every file is assumed hostile: lengths, shapes
// and offsets are held against each other and the file's size, tensors lie end to end as
// the format demands, and what the header takes is bounded. The format is specified in the
// README of huggingface/safetensors. What a tensor means is for others to know.
package safetensors
