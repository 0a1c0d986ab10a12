//go:build arm64 && !purego

package kernels

var ternaryKernels = []*ternaryKernel{genericTernary}

var ternaryRules []ternaryRule
