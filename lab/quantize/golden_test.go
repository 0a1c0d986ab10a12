package quantize

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// digests are what ggml's own quantisers make of rows(); see testdata/generate.py.
//
//go:embed testdata/digests.json
var digests []byte

const goldenRows, goldenCols = 24, 512

// mix is splitmix64's output function.
func mix(n uint64) uint64 {
	n = (n + 1) * 0x9E3779B97F4A7C15
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31
}

// rows makes the rows of generate.py.
func rows() []float32 {
	v := make([]float32, goldenRows*goldenCols)
	for i := range v {
		n := mix(uint64(i))
		words := n&0xffff + n>>16&0xffff + n>>32&0xffff + n>>48
		x := float32(int(words)-131070) * 0x1p-20
		r, block := i/goldenCols, i%goldenCols/32
		switch r % 8 {
		case 1: // heavy tails
			x = float32(float32(float32(x*x)*x) * 64)
		case 2: // blocks of zeros
			if block%3 == 1 {
				x = 0
			}
		case 3: // off centre
			x += 0.0625
		case 4: // ternary
			s := 0x1p-6 * float32(1+r+block/8)
			switch {
			case float64(x) > float64(float32(0.02)):
				x = s
			case float64(x) < -float64(float32(0.02)):
				x = -s
			default:
				x = 0
			}
		case 5:
			x = abs(x)
		case 6:
			x = -abs(x) - 0x1p-8
		case 7: // scales are no normal f16 numbers
			x *= 0x1p-14
		}
		v[i] = x
	}
	return v
}

// importances makes the weights of generate.py.
func importances() []float32 {
	w := make([]float32, goldenCols)
	for i := range w {
		n := mix(uint64(i) + 1<<32)
		if n>>60 != 0 {
			w[i] = float32(n&0xffff) * 0x1p-10
			w[i] *= w[i]
		}
	}
	return w
}

func floatBytes(v []float32) []byte {
	out, _ := binary.Append(nil, binary.LittleEndian, v)
	return out
}

func TestBlocksAreTheBytesOfTheReferenceQuantisers(t *testing.T) {
	var want map[string]string
	if err := json.Unmarshal(digests, &want); err != nil {
		t.Fatal(err)
	}
	src, columns := rows(), importances()
	if got := digest(append(floatBytes(src), floatBytes(columns)...)); got != want["rows"] {
		t.Fatalf("the rows are not those of generate.py: digest %s, want %s", got, want["rows"])
	}
	delete(want, "rows")
	if len(want) != 30 {
		t.Fatalf("%d digests, want 30", len(want))
	}
	for key, digestOf := range want {
		name, weighted := strings.CutSuffix(key, " weighted")
		typ, ok := gguf.TypeNamed(name)
		if !ok {
			t.Fatalf("no type %s", name)
		}
		size, err := typ.Size([]int{goldenCols, goldenRows})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, size)
		var w []float32
		if weighted {
			w = columns
		}
		encode := func() error { return Encode(typ, dst, src, w) }
		if typ == gguf.Q2_0 { // its scales are searched for here, and not in ggml: see pairs.go
			encode = func() error { return gguf.Quantize(typ, dst, src) }
		}
		if err := encode(); err != nil {
			t.Fatal(err)
		}
		if got := digest(dst); got != digestOf {
			t.Errorf("%s: digest %s, want %s%s", key, got, digestOf, differing(key, dst, typ))
		}
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// differing says which block differs first, if LUTRA_GOLDEN_QUANTIZE is the folder that
// generate.py wrote blocks into.
func differing(key string, got []byte, typ gguf.Type) string {
	dir := os.Getenv("LUTRA_GOLDEN_QUANTIZE")
	want, err := os.ReadFile(filepath.Join(dir, strings.Replace(key, " ", ".", 1)))
	if dir == "" || err != nil || len(want) != len(got) {
		return ""
	}
	size := typ.BlockBytes()
	out, n := "", 0
	for i := 0; i < len(got); i += size {
		if !bytes.Equal(got[i:i+size], want[i:i+size]) {
			if n++; n == 1 {
				out = "\nblock " + hex.EncodeToString(got[i:i+size]) + "\nwant  " + hex.EncodeToString(want[i:i+size])
			}
			if n <= 20 {
				out += " row " + string(rune('0'+i/size/(goldenCols/typ.BlockLen())%8))
			}
		}
	}
	return out
}
