// Package soak drives a server with a mixture of requests, good, bad and broken off, follows each
// to its end, and looks whether the server is afterwards as it was before.
//
//	seed ─▶ request i of a kind ─▶ clients ═══HTTP═══▶ lutra serve, a process
//	                                  │                      │ /metrics, /proc
//	             answer, refusal, cancelled, or a fault      ▼
//	                                  └────────▶ Report ◀─ samples ─▶ CSV, SVG
//
// Each request must end with a whole answer, an error that says why, or its own cancelling;
// nothing else, and nothing that never ends, is no fault.
package soak
