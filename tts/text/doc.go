// Package text turns what a model writes into what is delivered of it: whole characters, up
// to a stop string, thoughts apart from the answer.
package text
