package quantize

import (
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func BenchmarkEncode(b *testing.B) {
	src, columns := rows(), importances()
	for _, t := range []gguf.Type{gguf.Q8_0, gguf.Q4_0, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K, gguf.IQ4_NL, gguf.IQ4_XS, gguf.MXFP4, gguf.TQ1_0} {
		size, _ := t.Size([]int{len(src)})
		dst := make([]byte, size)
		for _, w := range [][]float32{nil, columns} {
			name := t.String()
			if w != nil {
				if encoders[t].weighted == nil {
					continue
				}
				name += "/weighted"
			}
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(len(src))) // MB/s are millions of weights a second
				for b.Loop() {
					if err := Encode(t, dst, src, w); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
