// Package batcher decodes many sequences in one ragged batch a step.
//
//	callers ──mailbox──▶ loop ──buffers──▶ callers
//
//	drain → admit → plan → forward → sample → deliver → account
//
// Each part of a step has an owner with scratch memory of its own:
//   - admission: which sequences hold KV blocks
//   - restorer: which wait for blocks that are read from files
//   - planner: asks the scheduler
//   - constraints: tokens that have to come
//   - draftSelector: tokens computed before they are known
//   - duplicates: equal sequences are computed once
//   - tenant: of the StepArbiter that several engines share
//   - delivery: tokens to readers
//
// One goroutine runs the steps and owns all of these, the KV cache and the
// model's state. Callers talk to it through a bounded mailbox and read tokens
// from a buffer a sequence, so a slow reader never stalls a step.
//
// Files call only those below them:
//
//	engine      the package's face: open, run, drain
//	loop        a step, from one owner to the next
//	delivery    draws tokens and hands them to readers
//	draftselector, draftoptions, drafterstate       which guesses a step computes
//	draftmtp, draftmodel, draftpass, lookup         who guesses
//	constraints, maskwait, planner, duplicates, admission, boundaries, restorer, room
//	step        what is planned, and what becomes of it
//	generate, logits, fork                          what a caller asks of a sequence
//	sequence    its two sides: task is the loop's, shared is the caller's too
//	shared, request, bounds
//	task, constraint, drafts
//	mailbox, options, speculation, stats, pace, arbiter, drafter, errors
//
// Invariants: a plan never exceeds its budget and always makes progress. Randomness
// depends on (seed, candidate, position) alone, and a sequence's tokens do not depend on
// its neighbours. A cancelled sequence's blocks are free at the next step. Running out of
// KV blocks preempts, and is never shown.
package batcher
