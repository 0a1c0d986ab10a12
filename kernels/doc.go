// Package kernels multiplies packed low-bit weights with activations.
//
//	Matrix (packed once, immutable) ──Backend.Load──▶ Linear ──Mul──▶ y[n][Rows]
//	float32 rows ──Acts.Set──▶ Acts (quantised when needed, shared by q,k,v) ──┘
//
// A product is y[N][M] = x[N][K] · W[M][K]ᵀ. N counts tokens, M outputs, K
// inputs. Every implementation keeps two promises:
//
//   - row n of y depends on row n of x alone, bit for bit, whatever else is in the
//     batch, however many threads run and however the work is split;
//   - integer products (the ternary packings) are exact, so all implementations
//     agree bit for bit; float products agree within a bound stated with each.
//
// This package chooses the product for a packing; the packages below it do the
// work (docs/adr/0001-layers.md). Each instruction set has kernels besides the
// portable ones, and rules, measured at the first use, pick among them by packing
// and N. LUTRA_KERNEL names one to use instead: an instruction set ("avx2",
// "avxvnni", "generic") or one of ternary.Implementations ("avx2:lut",
// "avx512:hybrid"). Package bench measures them all.
//
// Nothing here knows of layers, heads or sequences.
package kernels
