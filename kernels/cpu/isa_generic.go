//go:build purego || !(amd64 || arm64)

package cpu

func Has(ISA) bool { return false }
