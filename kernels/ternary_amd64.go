//go:build amd64 && !purego

package kernels

var ternaryKernels = []*ternaryKernel{genericTernary, madTernary, lutTernary, vnniTernary}

// ternaryRules: the first tokens at which each kernel was measured to lead.
var ternaryRules = []ternaryRule{
	{AVX2, I1, 1, madTernary},
	{AVX2, I1, 10, lutTernary},
	{AVX2, I2, 1, madTernary},
	{AVX2, I2, 10, lutTernary},
	{AVX512, I1, 1, vnniTernary},
	{AVX512, I2, 1, vnniTernary},
}
