// Package tokenizer turns text into the token ids of a GGUF file's vocabulary
// and back.
//
//	text ─▶ special tokens cut out ─▶ words (pre-tokenizer) ─▶ byte-level BPE ─┐
//	                               └▶ ▁ for spaces ─▶ SentencePiece merges ────┴▶ ids
//
// Two tokenizer models are known: byte-level BPE (tokenizer.ggml.model "gpt2",
// with the pre-tokenizer that tokenizer.ggml.pre names) and SentencePiece BPE
// ("llama", with scores and byte fallback). Others are refused by name.
//
// Invariants: a Tokenizer never changes after New and may be used by many
// goroutines; byte-level BPE gives every byte sequence back unchanged; text
// encoded without ParseSpecial never yields a control token; the time to
// encode grows with n·log n, whatever the text.
//
// The package does no Unicode normalisation and knows no chat templates.
package tokenizer
