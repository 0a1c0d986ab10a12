//go:build !amd64

package cpu

func hasFMA() bool { return true }
