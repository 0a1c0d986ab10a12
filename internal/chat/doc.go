// Package chat asks a model: one question, or a conversation at the terminal or
// through pipes.
//
//	Ask, Run ──▶ Answerer ─┬─ NewLocal: a model in this process
//	                       └─ NewRemote: a server of the OpenAI API
package chat
