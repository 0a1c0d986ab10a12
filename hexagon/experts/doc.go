// Package experts says how mixtures of experts run on an NPU, whose graphs have static
// shapes (the paper NPUMoE, §4). Plans are made by others, of what routers chose.
//
//	a layer of a plan   group 0: experts 5 2 9 4, 64 rows each, NPU    one launch
//	                    group 1: experts 0 7 1 3, 32 rows each, NPU    one launch
//	                    group 2: experts 6 8 ..., 32 rows each, CPU
//
// A chunk is the tokens of a prompt that a step computes. An expert's capacity is the
// rows of a chunk that its graph has room for: a chunk that gives it fewer is padded, and
// what a chunk gives it beyond them overflows. Plans are JSON files, which may be anybody's:
// ReadPlan checks all of them.
package experts
