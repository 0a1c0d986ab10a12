// Package tts turns a conversation into one or several answers.
//
//	Request ──render, encode──▶ tokens ──batcher──▶ tokens ──decode, stop──▶ Events
//
// A Strategy decides how many sequences an answer costs. Single decodes one
// sequence a choice; package search has the other. All strategies yield the same
// Events, so a caller streams a searched answer as it streams a plain one. A search
// adds Progress and, at the end, its Outcome.
//
// Invariants: the texts of events concatenate to the unstreamed text. Text is
// valid UTF-8 whatever bytes the tokens hold, and has nothing of a stop string or
// a special token. A choice's text depends on the request and its seed, never on
// what else is running.
//
// The package knows nothing of HTTP, batches or KV blocks.
package tts
