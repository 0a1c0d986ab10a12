package quantize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// NVFP4's weights are multiplied by the tensor beside them, NAME.scale, one number a matrix; beside it
// may stand what activations were scaled by elsewhere, which nothing reads.
const (
	factorsName    = "scale"
	inputScaleName = "input_scale"
)

// takeFactors has weights that leave NVFP4 take their factors with them: the tensors of these go.
func (p *Plan) takeFactors(f *gguf.File) error {
	taken := map[string]bool{}
	for i := range p.Tensors {
		t := &p.Tensors[i]
		stem, ok := strings.CutSuffix(t.Name, "weight")
		if !ok || t.Type != gguf.NVFP4 || t.To == gguf.NVFP4 {
			continue
		}
		taken[stem+factorsName], taken[stem+inputScaleName] = true, true
		scale, matrices := f.Tensor(stem+factorsName), 1
		for i := 2; i < len(t.Dims); i++ {
			matrices *= t.Dims[i]
		}
		if scale == nil {
			continue
		}
		if !scale.Type.Supported() || scale.Len() != matrices {
			return fmt.Errorf("tensor %q: %w: %v of shape %v, want %d numbers, the factors of %s", scale.Name, gguf.ErrFormat, scale.Type, scale.Dims, matrices, t.Name)
		}
		t.factors = make([]float32, matrices)
		if err := scale.Dequantize(t.factors, 0); err != nil {
			return err
		}
	}
	p.Tensors = slices.DeleteFunc(p.Tensors, func(t Planned) bool { return taken[t.Name] })
	return nil
}

// multiply multiplies rows of t from lo on by the factors of their matrices.
func (t *Planned) multiply(rows []float32, lo int) {
	if t.factors == nil {
		return
	}
	each := t.Rows() / len(t.factors)
	for i := range rows {
		rows[i] *= t.factors[(lo+i/t.Cols())/each]
	}
}
