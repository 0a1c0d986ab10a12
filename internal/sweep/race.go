//go:build race

package sweep

const race = true
