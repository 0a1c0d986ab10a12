// Package server answers HTTP requests with the strategies of package tts.
//
//	body ──receive──▶ jsonread.Fields ──openai──▶ tts.Request ──tts.Strategy──▶ tts.Deltas ──openai, jsonwrite──▶ JSON
//
// A request is let in (admission), its body is received into memory that is
// counted, and its fields are read where they lie. A handler checks all of it before
// it costs more, hands it to a strategy, and writes what the strategy yields, at
// once or as a stream. The request's context ends with its client, its time limit
// or the server, and takes the work in the engine with it.
//
// Invariants: every answer that is not a success carries OpenAI's error
// envelope, from the one map in errors.go; a streamed answer concatenates to
// the unstreamed one; prompts are never logged below level Trace; no client,
// however slow, holds up another.
//
// The package knows nothing of tokens beyond counting them, nor of batches.
package server
