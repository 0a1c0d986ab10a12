package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// drawn returns bytes of the generator SplitMix64 (Steele, Lea and Flood 2014), as little-endian words.
func drawn(seed uint64, n int) []byte {
	b := make([]byte, 0, n+7)
	for len(b) < n {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b = binary.LittleEndian.AppendUint64(b, z^z>>31)
	}
	return b[:n]
}

// drawnBlocks returns n blocks of an IQ type with finite scales.
func drawnBlocks(t Type, n int) []byte {
	size, high := t.BlockBytes(), 1 // the high byte of the scale
	if t == IQ1_M {
		high = 55
	}
	b := drawn(uint64(t), n*size)
	for i := high; i < len(b); i += size {
		b[i] &= 0xbf
	}
	return b
}

// ggml's dequantize_row_iq* (llama.cpp 0c1e57098) made these values of 1,024 drawn blocks, which name every entry of the
// codebooks: the SHA-256 of the values as little-endian float32, and the first, the second and the 256th.
func TestBlocksOfCodebooksHaveTheValuesThatGgmlGivesThem(t *testing.T) {
	for typ, want := range map[Type]struct {
		sum    string
		values [3]float32
	}{
		IQ2_XXS: {"5ca8e9c2441e1242c000014336aabcdc365f42905d1df8a0eff5573a31514b30", [3]float32{0.029890239238739014, -0.009564876556396484, 0.09095829725265503}},
		IQ2_XS:  {"b66d786f17155eeb29d786b7f9a712ca446a1fde956d2b572439eac6856f390d", [3]float32{-4.3858642578125, -23.574020385742188, -2.1640777587890625}},
		IQ3_XXS: {"1cf047a58be9855598ea2c948f16b884bbf75d4ed819a62df5670740790b69c0", [3]float32{-15.339111328125, -10.619384765625, 12.192626953125}},
		IQ1_S:   {"98f69123356de6a8cae44315b504cfffcf9a5712aadfb22c00accce8dbe8f830", [3]float32{0.030976295471191406, 0.030976295471191406, -0.018738746643066406}},
		IQ3_S:   {"8d40bb9e06cfcbf559272a2137f8c4c410f9719685fd24b30d7218f35d20fec4", [3]float32{1.4217681884765625, 0.7898712158203125, -2.0988006591796875}},
		IQ2_S:   {"4e78977cbc6dab641be157b653dab43b9e1c0c9932ac8e288fb571ebf1a62050", [3]float32{0.0003685951232910156, -0.0011518597602844238, -0.012670457363128662}},
		IQ4_XS:  {"988266fd4f385eb9a57d04eb9cbbf2f9b32206563c814e8e8dc4004625ed4535", [3]float32{-0.004482269287109375, -0.015687942504882812, 0.0005042552947998047}},
		IQ1_M:   {"8a310f26e7b09c7abcceb878dbef43e7e7b10e88770307449ae1113f1869a903", [3]float32{-0.0006129145622253418, -0.0006129145622253418, 0.00042432546615600586}},
	} {
		const blocks = 1024
		got := make([]float32, blocks*256)
		if err := dequantize(typ, got, drawnBlocks(typ, blocks)); err != nil {
			t.Fatal(err)
		}
		if first := [3]float32{got[0], got[1], got[255]}; first != want.values {
			t.Errorf("%v: values are %v, want %v", typ, first, want.values)
		}
		raw := make([]byte, 0, 4*len(got))
		for _, v := range got {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != want.sum {
			t.Errorf("%v: other values than ggml's", typ)
		}
	}
}
