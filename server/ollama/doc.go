// Package ollama is the JSON of Ollama's API: fields to a tts.Request, deltas to lines
// of JSON.
package ollama
