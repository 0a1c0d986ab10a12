// Package cpu knows the machine that kernels run on: its instruction sets, its
// cores and memory nodes, and memory aligned for vectors and laid on huge pages.
package cpu
