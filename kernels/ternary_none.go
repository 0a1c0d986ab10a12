//go:build purego || !(amd64 || arm64)

package kernels

var ternaryKernels = []*ternaryKernel{genericTernary}

var ternaryRules []ternaryRule
