//go:build !race

package sweep

const race = false
