// Package responses is the JSON of OpenAI's Responses API: fields to a tts.Request,
// deltas to responses and their events, and a bounded store of what was said.
package responses
