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
// The package knows nothing of layers, heads or sequences.
package kernels
