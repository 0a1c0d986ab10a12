// Package receipt says of an answer what it was computed from and with, so that another
// replica can compute it again: Builder makes a receipt while an answer is made, Read
// takes one from a file, Repeat makes the request that asks for the same, and Compare
// finds where two answers part.
//
// A receipt is a claim and no signature: who doubts it computes it again.
package receipt
