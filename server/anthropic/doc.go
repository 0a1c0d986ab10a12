// Package anthropic is the JSON of Anthropic's Messages API: fields to a tts.Request,
// deltas to messages and their events.
package anthropic
