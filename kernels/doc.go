// Package kernels multiplies packed low-bit weights with activations and holds
// the vector primitives a transformer needs around those products.
//
//	Matrix (packed once, immutable) ──Backend.Load──▶ Linear ──Mul──▶ y[n][Rows]
//	float32 rows ──Acts.Set──▶ Acts (quantised lazily, shared by q,k,v) ──┘
//
// A product is y[N][M] = x[N][K] · W[M][K]ᵀ. N counts tokens, M outputs, K
// inputs. Two promises hold for every implementation:
//
//   - row n of y depends on row n of x alone, bit for bit: what else is in the
//     batch, how many threads run and how the work was split never show;
//   - integer products (the ternary packings) are exact, so all
//     implementations agree bit for bit; float products agree within a bound
//     stated with each.
//
// Each instruction set has kernels beside the portable ones, and a table of
// rules, measured at the first use, picks among them by packing and N. LUTRA_KERNEL names one to
// use instead: an instruction set ("avx2", "avxvnni", "generic") or one of
// Implementations ("avx2:lut", "avx512:hybrid"). BenchKernels measures them all.
//
// The package knows nothing of layers, heads or sequences.
package kernels
