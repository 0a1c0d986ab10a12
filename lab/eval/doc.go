// Package eval measures what test-time scaling buys: it asks models problems with
// known answers, with several methods and candidate counts, and reports accuracy
// against cost.
//
//	problems ─┐
//	          ├─▶ Experiment.Run ──Solve──▶ Record ──▶ Journal (one JSON line each)
//	points  ──┘                                            │
//	                                                       ▼
//	               results.json, Markdown, Pareto plot ◀── Summarise
//
// A Point is a model, a method and a size; a Record is what one point made of
// one problem. The journal makes a run resumable: what it holds is not asked
// again. All points give problem i the same seed, so that methods are compared
// on the same samples.
//
// The package runs no model itself: Local asks one in this process, Remote a
// server, and tests script their own Solve.
package eval
