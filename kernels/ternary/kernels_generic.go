//go:build purego || !(amd64 || arm64)

package ternary

var kernels = []*kernel{genericKernel}

var rules []rule
