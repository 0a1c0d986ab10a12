// Package openai reads and writes the JSON of OpenAI's API, with what vLLM,
// llama.cpp and Lutra add to it.
//
//	jsonread.Fields ──Fields──▶ tts.Request       tts.Event ──chatEncoder, textEncoder──▶ JSON
//
// Other APIs read with Fields what they have in common with it. bounds.go lists what a
// request may hold.
package openai
