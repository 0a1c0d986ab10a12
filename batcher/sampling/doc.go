// Package sampling turns rows of logits into tokens.
//
// What is drawn depends on the row, the parameters and (seed, candidate,
// position) alone: not on the other rows of a step, nor on the worker that
// draws. The package knows no sequences and no engine.
package sampling
