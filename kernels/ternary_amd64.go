//go:build amd64 && !purego

package kernels

var ternaryKernels = []*ternaryKernel{genericTernary}

var ternaryRules []ternaryRule
