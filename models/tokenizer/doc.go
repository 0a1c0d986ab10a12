// Package tokenizer turns text into the token ids of a GGUF file's vocabulary
// and back.
//
//	text ─▶ special tokens cut out ─▶ words (pre-tokenizer) ─▶ byte-level BPE ─┐
//	                               ├▶ ▁ for spaces ─▶ SentencePiece merges ────┤
//	                               ├▶ rules ─▶ words ─▶ likeliest pieces ──────┤
//	                               └▶ words ─▶ longest pieces ─────────────────┴▶ ids
//
// Four tokenizer models are known: byte-level BPE (tokenizer.ggml.model "gpt2",
// with the pre-tokenizer that tokenizer.ggml.pre names), SentencePiece BPE
// ("llama", with scores and byte fallback), SentencePiece's unigrams ("t5") and
// WordPiece ("bert"). Others are refused by name.
//
// Invariants: a Tokenizer never changes after New and may be used by many
// goroutines. Byte-level BPE gives every byte sequence back unchanged, or
// composed if the model asks for that (nfc.go). Text encoded without ParseSpecial
// never yields a control token. The time to encode grows with n·log n, whatever
// the text.
//
// Texts are normalised (Unicode) as the last two models ask, and to NFC for byte-level BPE. The
// package knows no chat templates.
package tokenizer
