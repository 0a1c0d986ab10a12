// Package anthropic is the JSON of Anthropic's Messages API: fields to a tts.Request,
// events to messages and their events.
package anthropic
