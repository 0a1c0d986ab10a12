// Package responses is the JSON of OpenAI's Responses API: fields to a tts.Request,
// events to responses and theirs, and a bounded store of what was said.
package responses
