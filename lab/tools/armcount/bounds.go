package main

import (
	"fmt"
	"strings"
)

// bound is what no loop of its kind can pass: the multiplications of some columns, and the
// steps that the definition of the product asks for after them, on nothing but registers.
type bound struct {
	label    string
	multiply string
	times    int
	steps    []string // % is the sum, @ a sum of floats
	rows     []row
	in       string // the package whose test has the rows; none: kernels
}

func (b bound) room() string {
	if b.in == "" {
		return "kernels"
	}
	return b.in
}

// block makes as many sums as registers hold, with sums of floats beside them.
func (b bound) block() []string {
	sums := 16
	if b.steps != nil {
		sums = 8
	}
	var block []string
	for range b.times {
		for i := range sums {
			block = append(block, fmt.Sprintf(b.multiply, i))
		}
	}
	for _, s := range b.steps {
		for i := range sums {
			block = append(block, strings.NewReplacer("%", fmt.Sprint(i), "@", fmt.Sprint(8+i)).Replace(s))
		}
	}
	return block
}

const (
	sdot  = "sdot\tv%d.4s, v16.16b, v17.4b[1]"
	fmla  = "fmla\tv%d.4s, v16.4s, v17.s[1]"
	smmla = "smmla\tv%d.4s, v16.16b, v17.16b"
)
