package commands

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/quantize"
)

// quantized is the object of `quantize --json`.
type quantized struct {
	File     string            `json:"file,omitempty"` // that was written
	Type     string            `json:"type"`
	Tensors  []quantizedTensor `json:"tensors"`
	Weights  int64             `json:"weights"`
	Before   int64             `json:"bytes_before"`
	After    int64             `json:"bytes"`
	Bits     float64           `json:"bits_a_weight"`
	Error    float64           `json:"relative_error"` // of all converted tensors, by the same measure
	Ternary  int               `json:"ternary"`        // tensors whose weights are ternary, in a type that is made for them
	Lossless int               `json:"ternary_lossless"`

	// Ruined counts tensors that were rounded to a ternary type, or to one bit, and were neither.
	Ruined int `json:"ruined,omitempty"`

	measured bool
	imatrix  string // "" : none
	totals   quantize.Totals
}

type quantizedTensor struct {
	Name   string `json:"name"`
	Dims   []int  `json:"dims"`
	Before string `json:"type_before"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	// Error is the root mean squared error over the root mean square of the weights.
	Error    float64 `json:"relative_error"`
	Lossless bool    `json:"lossless,omitempty"`
	Ternary  bool    `json:"ternary,omitempty"`
	Weighed  bool    `json:"weighed,omitempty"` // by the importance matrix
	Instead  bool    `json:"instead,omitempty"` // of a type whose blocks do not divide its rows
}

// add counts a tensor in.
func (q *quantized) add(r *quantize.Result) {
	q.totals.Add(r)
	q.Tensors = append(q.Tensors, quantizedTensor{
		Name: r.Name, Dims: r.Dims, Before: r.Tensor.Type.String(), Type: r.To.String(), Bytes: r.Bytes(),
		Error: r.Error, Lossless: r.Lossless, Ternary: r.Trits, Weighed: r.Weighed, Instead: r.Instead,
	})
	if q.measured && r.Ruined() {
		q.Ruined++
	}
	t := &q.totals
	q.Weights, q.Before, q.After, q.Ternary, q.Lossless, q.Error = t.Weights, t.Before, t.After, t.Ternary, t.Lossless, t.Error()
	q.Bits = 8 * float64(t.After) / float64(max(1, t.Weights))
}

func (q *quantized) print(w io.Writer) error {
	head := []string{"tensor", "shape", "from", "to", "size"}
	if q.measured {
		head = append(head, "error", "")
	}
	rows := [][]string{head}
	for i := range q.Tensors {
		t := &q.Tensors[i]
		row := []string{t.Name, fmt.Sprint(t.Dims), t.Before, t.Type, output.Bytes(int64(t.Bytes))}
		if q.measured {
			row = append(row, t.said(), t.note())
		}
		rows = append(rows, row)
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s: %s, before %s; %.2f bits a weight", q.Type, output.Bytes(q.After), output.Bytes(q.Before), q.Bits)
	if q.measured {
		fmt.Fprintf(w, "; error %.3f %%", 100*q.Error)
	}
	if q.Ternary > 0 {
		fmt.Fprintf(w, "\n%d of %d ternary tensors are kept without loss", q.Lossless, q.Ternary)
	}
	if q.Ruined > 0 {
		fmt.Fprintf(w, "\nwarning: %d tensors were not made for so few values, and have lost most of what they held: expect nonsense of the model. "+
			"Ternary and 1-bit types are for models that were trained so; of the others IQ4_XS is the smallest", q.Ruined)
	}
	if q.measured && q.imatrix != "" {
		fmt.Fprintf(w, "\ntensors weighed by %s: %d", q.imatrix, q.totals.Weighed)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// said is the error in words.
func (t *quantizedTensor) said() string {
	switch {
	case t.Type == t.Before:
		return ""
	case t.Lossless:
		return "none"
	}
	return fmt.Sprintf("%.3f %%", 100*t.Error)
}

func (t *quantizedTensor) note() string {
	switch {
	case t.Ternary && t.Lossless:
		return "ternary"
	case t.Ternary:
		return "ternary, scales rounded"
	case t.Instead:
		return "its rows are no whole blocks of the type meant"
	case t.Weighed:
		return "weighed"
	}
	return ""
}
