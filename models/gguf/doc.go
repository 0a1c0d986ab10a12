// Package gguf reads and writes GGUF files (versions 2 and 3, little-endian)
// and knows the storage types of their tensors.
//
//	magic version | key = value ... | name dims type offset ... | pad | tensor data ...
//	└──────────── header ───────────┴──── tensor directory ─────┘     └── Tensor ──┘
//
// Of a File opened from disk the header and the directory are read; its tensors
// stay in the file until Tensor.Load or Tensor.Dequantize reads them. Nothing is
// mapped into memory. If somebody truncates or overwrites the file, reads and
// File.Unchanged fail with ErrChanged; a mapping would end the process or change
// under the reader's hands. Metadata is copied and stays valid.
//
// A model may lie in several files, as gguf-split writes them: Open reads the
// first, which has the metadata of all, and finds the others by their names.
//
// Every file is assumed hostile. Counts, lengths, offsets and alignment are
// checked before use, and errors name the key or tensor and the offset. The
// memory taken stays within a small multiple of the file's size.
//
// The format is specified in ggml's docs/gguf.md. Weights are described by
// Type: its block size, Dequantize and Quantize. The package does not know
// what a tensor means; package models does.
package gguf
