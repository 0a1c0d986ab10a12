package quantize

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// squaredError returns the squared error of the weights that pairs hold, weighed by columns or
// evenly.
func squaredError(typ gguf.Type, pairs []byte, rows, columns []float32) (sum float64) {
	for i, v := range rows {
		block := pairs[i/typ.BlockLen()*typ.BlockBytes():]
		j := i % typ.BlockLen()
		d := vector.FromF16(binary.LittleEndian.Uint16(block))
		e := float64(v - d*float32(int(block[2+j/4]>>(2*(j%4))&3)-1))
		w := 1.0
		if columns != nil {
			w = float64(columns[i%len(columns)])
		}
		sum += w * e * e
	}
	return sum
}

func TestFourLevelsHaveABestScaleAndHeedImportances(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rows, columns := make([]float32, 64*256), make([]float32, 256)
	power := 0.0
	for i := range rows {
		rows[i] = float32(rng.NormFloat64()) * 0.02
		power += float64(rows[i]) * float64(rows[i])
	}
	for i := range columns {
		columns[i] = 1
		if i%3 == 0 {
			columns[i] = 50
		}
	}
	for _, typ := range []gguf.Type{gguf.Q2_0, gguf.PQ2_0} {
		encoded := func(encode func(dst []byte) error) []byte {
			dst := make([]byte, len(rows)/typ.BlockLen()*typ.BlockBytes())
			if err := encode(dst); err != nil {
				t.Fatal(err)
			}
			return dst
		}
		reference := encoded(func(dst []byte) error { return gguf.Quantize(typ, dst, rows) })
		plain := encoded(func(dst []byte) error { return Encode(typ, dst, rows, nil) })
		weighed := encoded(func(dst []byte) error { return Encode(typ, dst, rows, columns) })
		before, after := math.Sqrt(squaredError(typ, reference, rows, nil)/power), math.Sqrt(squaredError(typ, plain, rows, nil)/power)
		if after > 0.41 || before < 0.65 {
			t.Errorf("%v of normal weights errs by %.3f, ggml's rounding by %.3f", typ, after, before)
		}
		if with, without := squaredError(typ, weighed, rows, columns), squaredError(typ, plain, rows, columns); with >= 0.98*without {
			t.Errorf("%v: by importances the error is %.4g, without them %.4g", typ, with, without)
		}
	}
}
