// Package moecost models the time and energy that a machine needs to prefill a mixture of
// experts, where its NPU computes one launch after the other (the paper NPUMoE).
//
//	Machine (rates, launch cost, powers, each with its source)
//	Model (attention and experts)             ──▶ Machine.Prefill ──▶ Cost
//	Placement, Plan and Split (rows a chunk)
//
// A launch costs the same however little it computes; then it reads its weights and
// multiplies its rows, padding included. A graph that is not resident is made ready
// first. Nothing here was measured on a device by this project: whoever
// shows a Cost calls it modelled.
package moecost
