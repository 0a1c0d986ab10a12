// Package openai reads and writes the JSON of OpenAI's API, with what vLLM,
// llama.cpp and Lutra add to it.
//
//	jsonread.Fields ──Fields──▶ tts.Request       tts.Delta ──ChatShape, TextShape──▶ JSON
//
// It checks requests and knows nothing of how they are carried out: it has no
// models but the one that a request names, no HTTP and no engines. bounds.go lists
// what a request may hold.
package openai
