// Package verify judges answers by checks of their text, without a model.
//
//	answer ──Check──▶ Verdict: a score in [0, 1], and why
//
// A request brings tests for an answer's code (package sandbox), a JSON Schema or a pattern for its final
// answer, or asks for its arithmetic to be checked. The operator brings a Webhook. All are safe for concurrent
// use, and all but a Webhook give one answer the same verdict every time.
package verify
