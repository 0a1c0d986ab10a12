// Package doctor looks at the machine as a server for language models: what it has, what
// slows it down or stops it, what to change, and what speed to expect.
//
//	/proc, /sys ─▶ Look ─▶ Machine ─▶ Check ──▶ findings, with what to do
//	kernels, memory ─▶ Measure ─▶ Speed ─▶ Expect ─▶ tokens a second of the catalogue's models
//
// What the system does not tell is left out. It changes nothing.
package doctor
