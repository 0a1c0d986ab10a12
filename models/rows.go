package models

// rowOf returns row i of x, which has rows of width elements.
func rowOf(x []float32, i, width int) []float32 { return x[i*width : (i+1)*width] }

// rowsOf returns rows [lo, hi) of x, which has rows of width elements.
func rowsOf(x []float32, lo, hi, width int) []float32 { return x[lo*width : hi*width] }

func moveRow(x []float32, to, from, width int) { copy(rowOf(x, to, width), rowOf(x, from, width)) }
