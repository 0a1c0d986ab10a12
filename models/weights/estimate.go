package weights

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
)

// sampleRows is the number of rows of a matrix that show the packing of all.
const sampleRows = 4

// Estimate returns about how many bytes the weights of a tensor will take in memory: exactly
// where its first rows are like the others. It reads those alone.
func Estimate(t *gguf.Tensor, form Form) (int64, error) {
	if !t.Type.Supported() {
		return 0, fmt.Errorf("tensor %s has storage type %v, which is not supported", t.Name, t.Type)
	}
	if len(t.Dims) == 1 || t.Rows() == 1 {
		return 4 * int64(t.Len()), nil
	}
	sample, err := t.Load(0, min(sampleRows, t.Rows()), nil)
	if err != nil {
		return 0, err
	}
	w, err := Pack(sample, 1, form)
	if err != nil {
		return 0, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	bytes := int64(kernels.DataSize(t.Rows(), t.Cols(), w.Packing))
	if o := w.Offsets; o != nil {
		bytes += int64(kernels.DataSize(t.Rows(), o.Cols, o.Packing))
	}
	if len(w.Scale) > 0 {
		bytes += 4 * int64(t.Rows())
	}
	return bytes, nil
}
