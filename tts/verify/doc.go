// Package verify judges answers by what can be checked of their text, without a model.
//
//	answer ──Check──▶ Verdict: a score in [0, 1], and why
//
// Checks are what a request brings: tests that an answer's code is to pass (package sandbox), a
// JSON Schema or a pattern that its final answer is to match, arithmetic that is to be right; or
// what the operator brings: a Webhook. All are safe for concurrent use, and all but a Webhook give
// one answer the same verdict every time.
package verify
