// Package pool runs tasks on a fixed set of worker threads. Workers poll for the
// next task for a while and then park, each on a word of its own.
package pool

//go:generate go -C ../_gen run . -family pause -pkg pool -out ../pool/asm_pause_amd64.s -stubs ../pool/asm_pause_amd64.go
