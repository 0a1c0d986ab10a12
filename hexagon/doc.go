// Package hexagon runs a model's matrices and attention on a Hexagon NPU, or on what
// stands in for one.
//
//	matrix.Matrix ──Load──▶ layout.Weights ──Start──▶ memory of a device.Device
//	rows ──Mul──▶ lookups (OpPrecompute, OpGEMV), or tiles (OpDequant, OpTileMul; OpByteTiles, OpTileMulBytes) ──▶ y
//	rows, KV cache ──RunLayers──▶ whole layers, one run of packets a step ──▶ logits, keys, values
//	queries, KV cache ──Attend──▶ OpTileMul, OpSoftmax, OpTileMul ──▶ attended values
//	rows by expert ──RunExperts──▶ launches of groups of experts, the host for the rest ──▶ y
//
// A Backend is a models.Accelerator. It has three parts, and what makes requests of rows that the host has:
//
//	plan      what of a model the device computes, and where it lies: data, made at load
//	step      a plan and rows ──▶ the packets of one request
//	session   memory, lock, device: runs requests
//	products, attention, expertRuns   rows of the host ──▶ requests ──▶ results
//
// Layers that the plan does not take stay the host's, each with its reason: Backend.Refusals. So do routing, sampling
// and matrices of packings that the device does not hold exactly. All devices give the same bits.
package hexagon
