// Package sandbox runs code that nobody vouches for and says which tests it passes.
//
//	code, tests ──▶ an interpreter compiled to WebAssembly ──▶ Result
//
// The interpreter (QuickJS for JavaScript, CPython for Python) runs in wazero, in this process:
// it can touch nothing but its own linear memory and the few functions that this package gives it.
// There are no files, no network, no clock and no chance: time stands still, random numbers begin
// with the same seed. Memory is bounded by the module's limit, work by steps that the module counts
// itself (lab/tools/wasmfuel), so a program that is too slow is so on any machine and under any load.
// What it prints is dropped.
//
// Each test has an instance of its own, a copy of one that is ready, in which the code runs first: tests
// cannot disturb each other. The code is not kept from tampering with the interpreter's own objects that a test relies
// on, such as JSON or __eq__.
package sandbox
