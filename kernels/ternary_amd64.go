//go:build amd64 && !purego

package kernels

var ternaryKernels = []*ternaryKernel{genericTernary, madTernary, lutTernary, dotTernary, vnniTernary, hybridTernary}

// ternaryRules: the first tokens at which each kernel was measured to lead. For
// AVX512 that was on a Zen 5, before this code (docs/adr/0008-hybrid.md).
var ternaryRules = []ternaryRule{
	{AVX2, I1, 1, madTernary},
	{AVX2, I1, 9, lutTernary},
	{AVX2, I2, 1, madTernary},
	{AVX2, I2, 12, lutTernary},
	{AVXVNNI, I1, 1, dotTernary},
	{AVXVNNI, I1, 10, lutTernary},
	{AVXVNNI, I2, 1, dotTernary},
	{AVXVNNI, I2, 13, lutTernary},
	{AVX512, I1, 1, vnniTernary},
	{AVX512, I1, 64, hybridTernary},
	{AVX512, I2, 1, vnniTernary},
	{AVX512, I2, 64, hybridTernary},
}
