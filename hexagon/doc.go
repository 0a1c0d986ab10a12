// Package hexagon runs a model's matrices and attention on a Hexagon NPU, or on what
// stands in for one.
//
//	matrix.Matrix ──Load──▶ layout.Weights ──Start──▶ memory of a device.Device
//	rows ──Mul──▶ lookups (OpPrecompute, OpGEMV), or tiles (OpDequant, OpTileMul; OpByteTiles, OpTileMulBytes) ──▶ y
//	rows, KV cache ──RunLayers──▶ whole layers, one run of packets a step ──▶ logits, keys, values
//	queries, KV cache ──Attend──▶ OpTileMul, OpSoftmax, OpTileMul ──▶ attended values
//	rows by expert ──RunExperts──▶ launches of groups of experts, the host for the rest ──▶ y
//
// A Backend is a models.Accelerator.
// Layers whose matrices have lookups are recorded whole: norms, rotations, gates and residuals
// are the device's then. Elsewhere they stay on the host, as do routing, sampling and matrices of
// packings that the device does not hold exactly. All devices give the same bits.
package hexagon
