// Package batcher decodes many sequences in one ragged batch a step.
//
//	callers ──mailbox──▶ Engine.Step ──buffers──▶ callers
//
//	drain → admit → plan → forward → sample → deliver → account
//
// Each part of a step has an owner with scratch memory of its own: admission
// (who holds KV blocks), planner (asks the scheduler), draftSelector (tokens
// computed before they are known), duplicates (equal sequences are computed
// once), tenant (of the StepArbiter that several engines share) and delivery.
//
// One goroutine runs the steps and owns all of these, the KV cache and the
// model's state. Callers talk to it through a bounded mailbox and read tokens
// from a buffer a sequence, so a slow reader never stalls a step.
//
// Invariants: a plan never exceeds its budget and always makes progress;
// randomness depends on (seed, candidate, position) alone; what a sequence
// generates does not depend on its neighbours; a cancelled sequence's blocks
// are free at the next step; running out of KV blocks preempts, and is never shown.
package batcher
