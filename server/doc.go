// Package server answers HTTP requests with the strategies of package tts.
//
//	POST ─▶ receive ─▶ api.Call ─▶ an API's folder ─▶ api.Ask ─▶ tts.Strategy ─▶ tts.Event ─▶ filters ─▶ api.Encoder ─▶ JSON
//
// A request is let in (admission), its body is received into memory that is
// counted, and its fields are read where they lie. The API whose route it is checks all
// of it before it costs more, and says what it asks for. The runner has a strategy answer
// it, and writes what the strategy yields as the API's encoder says, at once or as
// a stream. The request's context ends with its client, its time limit or the server, and
// takes the work in the engine with it.
//
// Invariants:
//   - Every answer that is not a success carries an error as its API writes it, from the one map in
//     errors.go.
//   - A streamed answer concatenates to the unstreamed one.
//   - Prompts are never logged below level Trace.
//   - No client, however slow, holds up another.
//
// The package knows nothing of tokens beyond counting them, nor of batches.
package server
