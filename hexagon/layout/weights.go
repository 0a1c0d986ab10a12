package layout

import (
	"fmt"
	"math"
)

// Format says what the codes of a matrix mean. The value of a weight is
//
//	scale · v(q) + offset
//
// with v(q) = A·q - B, or Values[q] where that is given, and one scale and offset a
// group of columns.
type Format struct {
	Bits    int       // of a code: 1, 2, 4 or 8
	Group   int       // columns of one scale: 32, 64 or 128; 0: the whole row
	A, B    int       // 1 ≤ A ≤ 2, 0 ≤ B ≤ 255
	Offsets bool      // groups have offsets; not with whole rows
	Values  []float32 // 16 values that are no line of A and B (NF4, IQ4_NL)
}

// Formats of models.
var (
	Ternary = Format{Bits: 2, A: 1, B: 1}            // -1, 0, 1; code 3 is 2
	Binary  = Format{Bits: 1, A: 2, B: 1}            // -1, 1
	Q4_0    = Format{Bits: 4, A: 1, B: 8, Group: 32} // -8 .. 7
	IQ4_NL  = Format{Bits: 4, Group: 32, Values: []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}}
	NF4     = Format{Bits: 4, Group: 64, Values: []float32{-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138,
		-0.18477343, -0.091050036, 0, 0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1}}
	FP4   = Format{Bits: 4, Group: 32, Values: []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}}
	MXFP4 = Format{Bits: 4, Group: 32, Values: []float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}} // twice FP4: integers
	Q8_0  = Format{Bits: 8, A: 1, B: ByteZero, Group: 32}
)

// ByteZero is the code of zero of eight bits.
const ByteZero = 128

// MaxActivation bounds the integers that OpGEMV multiplies: a sum of four fits int16.
const MaxActivation = 8191

// MaxDim bounds the columns of a matrix, and the rows that one packet multiplies.
const MaxDim = 1 << 17

// Weights is a matrix as the device reads it, whose one copy serves decode and
// prefill. w[m][k] = R[m]·(S·v(q) + O), with S and O in int16, in units of 2⁻¹⁵ and
// 2⁻¹². R stays on the host.
type Weights struct {
	Format     // Group is K for whole rows
	Rows, Cols int
	M, K       int       // Rows and Cols, padded: R is 0 for further rows, codes are 0 in further columns
	R          []float32 // [M]
	Codes      []byte    // [M/Strip][K/Block][BlockBytes]
	Scales     []int16   // [M/Strip][K/Group][Strip] by ScaleIndex; nil for whole rows
	Offsets    []int16   // like Scales; nil without offsets
}

// InBytes reports whether codes stand in bytes, two of four bits in a byte: they are then
// multiplied as bytes. Others stand bit by bit, for lookups.
func (f *Format) InBytes() bool { return f.Bits == 8 || f.Values != nil }

// Integers reports whether OpGEMV can multiply the matrix: its values are A·q - B, or such
// that a byte holds.
func (f *Format) Integers() bool {
	for _, v := range f.Values {
		if v != float32(int8(v)) {
			return false
		}
	}
	return true
}

// Check says what is wrong with a format.
func (f Format) Check() error {
	switch {
	case f.Bits != 1 && f.Bits != 2 && f.Bits != 4 && f.Bits != 8:
		return fmt.Errorf("hexagon: codes have 1, 2, 4 or 8 bits, not %d", f.Bits)
	case f.Group != 0 && f.Group != 32 && f.Group != 64 && f.Group != 128:
		return fmt.Errorf("hexagon: groups have 32, 64 or 128 columns, or are whole rows; not %d", f.Group)
	case f.Group == 0 && (f.Offsets || f.InBytes()):
		return fmt.Errorf("hexagon: whole rows have neither offsets nor codes in bytes")
	case f.Values != nil && (f.Bits != 4 || len(f.Values) != 16):
		return fmt.Errorf("hexagon: %d values for codes of %d bits", len(f.Values), f.Bits)
	case f.Bits == 8 && (f.A != 1 || f.B != ByteZero):
		return fmt.Errorf("hexagon: codes of 8 bits stand for q - %d", ByteZero)
	case f.Values == nil && (f.A < 1 || f.A > 2 || f.B < 0 || f.B > 255):
		return fmt.Errorf("hexagon: values %d·q - %d are beyond the device's", f.A, f.B)
	}
	return nil
}

// New returns a matrix of rows×cols weights for SetRow to fill.
func New(rows, cols int, f Format) (*Weights, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if rows < 1 || cols < 1 || rows > 1<<24 || cols > MaxDim {
		return nil, fmt.Errorf("hexagon: a matrix of %d×%d weights", rows, cols)
	}
	m, k := roundUp(rows, Strip), roundUp(cols, TableCols)
	w := &Weights{Format: f, Rows: rows, Cols: cols, M: m, K: k,
		R: make([]float32, m), Codes: make([]byte, m/8*k*f.Bits)}
	if f.Group == 0 {
		w.Group = k
	} else {
		w.Scales = make([]int16, m*(k/f.Group))
	}
	if f.Offsets {
		w.Offsets = make([]int16, len(w.Scales))
	}
	return w, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// SetRow packs row m: a code for each column, a scale for each group that has
// columns, and offsets if the format has them. Rows may be set in any order and by
// several goroutines.
func (w *Weights) SetRow(m int, codes []uint8, scales, offsets []float32) error {
	groups := (w.Cols + w.Group - 1) / w.Group
	switch {
	case m < 0 || m >= w.Rows:
		return fmt.Errorf("hexagon: row %d of %d", m, w.Rows)
	case len(codes) != w.Cols || len(scales) != groups:
		return fmt.Errorf("hexagon: a row of %d codes and %d scales, not %d and %d", len(codes), len(scales), w.Cols, groups)
	case w.Offsets == nil && len(offsets) != 0 || w.Offsets != nil && len(offsets) != groups:
		return fmt.Errorf("hexagon: a row of %d offsets", len(offsets))
	}
	for _, c := range codes {
		if int(c) >= 1<<w.Bits {
			return fmt.Errorf("hexagon: code %d has more than %d bits", c, w.Bits)
		}
	}
	if err := w.scaleRow(m, codes, scales, offsets); err != nil {
		return err
	}
	size := w.K / Block * BlockBytes(w.Bits)
	strip := w.Codes[m/Strip*size:][:size]
	if w.InBytes() {
		packBytes(strip, m%Strip, codes, w.Bits)
	} else {
		packRow(strip, m%Strip, codes, w.Bits)
	}
	return nil
}

// scaleRow splits a row's scales and offsets into its factor and int16.
func (w *Weights) scaleRow(m int, codes []uint8, scales, offsets []float32) error {
	var s, o float64
	powers := w.Offsets == nil
	for _, f := range scales {
		s = max(s, math.Abs(float64(f)))
		half, _ := math.Frexp(math.Abs(float64(f)))
		powers = powers && (half == 0.5 || half == 0)
	}
	for _, f := range offsets {
		o = max(o, math.Abs(float64(f)))
	}
	if w.Scales == nil {
		w.R[m] = scales[0]
	} else {
		most := max(s*scaleUnit, o*offsetUnit) / math.MaxInt16
		if powers {
			most = 2 * s // a power of two as well, so that each code is exact
		}
		if w.InBytes() {
			// No sum of the largest activations leaves int32, roundings of scales included.
			for sum := w.magnitude(codes, scales, offsets) * MaxActivation / 0x7f000000; sum > most; most *= 2 {
			}
		}
		w.R[m] = float32(most)
	}
	r := float64(w.R[m])
	if math.IsNaN(s+o) || math.IsInf(r, 0) {
		return fmt.Errorf("hexagon: row %d has scales or offsets that are too large or no numbers", m)
	}
	if w.Scales == nil || r == 0 {
		return nil
	}
	at := m/Strip*(w.K/w.Group)*Strip + ScaleIndex(m%Strip)
	for g, f := range scales {
		w.Scales[at+g*Strip] = toInt16(float64(f) / r * scaleUnit)
	}
	for g, f := range offsets {
		w.Offsets[at+g*Strip] = toInt16(float64(f) / r * offsetUnit)
	}
	return nil
}

// magnitude returns the sum of a row's weights and offsets without their signs.
func (w *Weights) magnitude(codes []uint8, scales, offsets []float32) (sum float64) {
	for g, f := range scales {
		var values float64
		group := codes[g*w.Group : min((g+1)*w.Group, w.Cols)]
		for _, q := range group {
			values += math.Abs(float64(w.value(int(q))))
		}
		sum += math.Abs(float64(f)) * values
		if offsets != nil {
			sum += math.Abs(float64(offsets[g])) * float64(len(group))
		}
	}
	return sum
}

const scaleUnit, offsetUnit = 1 << 15, 1 << 12

func toInt16(f float64) int16 {
	return int16(max(-math.MaxInt16, min(math.Round(f), math.MaxInt16)))
}

// Table returns v(q) for each code, in fp16: what OpDequant looks up.
func (w *Weights) Table() []uint16 {
	t := make([]uint16, 1<<w.Bits)
	for q := range t {
		t[q] = F16(w.value(q))
	}
	return t
}

// value returns v(q).
func (w *Weights) value(q int) float32 {
	if w.Values != nil {
		return F32(F16(w.Values[q]))
	}
	return float32(w.A*q - w.B)
}

// ByteValues returns the values of codes as OpGEMV reads them: bytes that are 128 larger.
func (w *Weights) ByteValues() []byte {
	v := make([]byte, len(w.Values))
	for q, f := range w.Values {
		v[q] = uint8(int(f) + ByteZero)
	}
	return v
}

// RowCodes unpacks the codes of row m; dst has a place for each column, padding
// included if it is K long.
func (w *Weights) RowCodes(dst []uint8, m int) {
	size := w.K / Block * BlockBytes(w.Bits)
	strip := w.Codes[m/Strip*size:]
	if !w.InBytes() {
		unpackRow(dst, strip, m%Strip, w.Bits)
		return
	}
	for k := range dst {
		dst[k] = ByteCode(strip[k/Block*BlockBytes(w.Bits):], m%Strip, k%Block, w.Bits)
	}
}

// Dequantize undoes SetRow: it gives the weights of row m that the device
// multiplies by, but for the rounding of its arithmetic. dst is Cols long.
func (w *Weights) Dequantize(dst []float32, m int) {
	codes := make([]uint8, len(dst))
	w.RowCodes(codes, m)
	at := m/Strip*(w.K/w.Group)*Strip + ScaleIndex(m%Strip)
	for k, q := range codes {
		f := float64(w.value(int(q)))
		if w.Scales != nil {
			f *= float64(w.Scales[at+k/w.Group*Strip]) / scaleUnit
		}
		if w.Offsets != nil {
			f += float64(w.Offsets[at+k/w.Group*Strip]) / offsetUnit
		}
		dst[k] = float32(float64(w.R[m]) * f)
	}
}
