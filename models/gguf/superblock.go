package gguf

// Superblock is a block of 256 values, of ggml's IQ types or Q3_K: value i is
// D·Scales[i/16]·level, with the level that code i names.
type Superblock struct {
	D      float32
	Scales [16]int8
	Codes  [32]uint64 // eight a number, the first one lowest
}

// superblocks are the types whose blocks can be read so.
var superblocks = map[Type]func(s *Superblock, block []byte){
	Q3_K: readQ3_K, IQ4_XS: readIQ4_XS, IQ3_S: readIQ3_S, IQ3_XXS: readIQ3_XXS,
	IQ2_S: readIQ2_S, IQ2_XS: readIQ2_XS, IQ2_XXS: readIQ2_XXS, IQ1_M: readIQ1_M, IQ1_S: readIQ1_S,
}

// Superblocks returns what reads a block of the type; nil where blocks are no Superblock.
func (t Type) Superblocks() func(s *Superblock, block []byte) { return superblocks[t] }

// dequantizeSuper returns the traits.dequantize of a type whose blocks of size bytes are
// read by read, as codes of levels.
func dequantizeSuper(size int, read func(s *Superblock, block []byte), levels *[16]int8) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) {
		var s Superblock
		for ; len(dst) > 0; dst, src = dst[256:], src[size:] {
			read(&s, src[:size])
			for g, scale := range s.Scales {
				d := s.D * float32(scale)
				for i, out := range [2][]float32{dst[16*g : 16*g+8], dst[16*g+8 : 16*g+16]} {
					codes := s.Codes[2*g+i]
					for j := range out {
						out[j] = d * float32(levels[codes>>(8*j)&15])
					}
				}
			}
		}
	}
}
