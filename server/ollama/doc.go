// Package ollama is the JSON of Ollama's API: fields to a tts.Request, events to lines
// of JSON.
package ollama
