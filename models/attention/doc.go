// Package attention is the attention of a batch's rows over the KV cache.
//
//	rows' positions ──MakePlan──▶ Plan, for all layers ──Run, a layer──▶ attended values
//
// A Plan cuts rows into tiles and keys into splits, and finds which rows read
// the same blocks. A Pass takes workers through it. Neither knows of weights.
package attention
