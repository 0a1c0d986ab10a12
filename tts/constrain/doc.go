// Package constrain holds what a model writes to what a request asks: formats, bounds of
// thoughts, words that are never said, tokens that may end an answer.
package constrain
