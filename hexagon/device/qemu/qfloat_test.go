package qemu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/internal/sweep"
)

const qfloatProgram = "build/lutra-emulator-v75.elf"

// A significand is a number's, not rounded: the number is sig * 2^exp.
type significand struct {
	sig *big.Float
	exp int
}

func exact(v float64) *big.Float { return new(big.Float).SetPrec(1200).SetFloat64(v) }

// scaled returns f * 2^n.
func scaled(f *big.Float, n int) *big.Float { return new(big.Float).SetMantExp(f, n) }

// significandOf takes float32 bits apart as qfloat does, for which infinities are numbers.
func significandOf(bits uint32) significand {
	e, m := int(bits>>23&255), float64(bits&(1<<23-1))/(1<<23)
	if e > 0 {
		m++
	}
	if bits>>31 == 1 {
		m = -m
	}
	return significand{exact(m), max(e, 1) - 127}
}

// quarters splits f units of 2^-23 into a multiple of 4 and the rest.
func quarters(f *big.Float) (down int64, rest *big.Float) {
	q := scaled(f, -2)
	n, _ := q.Int64()
	if floor := new(big.Float).SetInt64(n); floor.Cmp(q) > 0 {
		n--
	}
	down = 4 * n
	return down, new(big.Float).SetPrec(1200).Sub(f, new(big.Float).SetInt64(down))
}

// qf32 rounds to V73's and V75's form (quic/qemu, mmvec_qfloat.c).
func (s significand) qf32() uint32 {
	if s.sig.Sign() == 0 {
		return 0
	}
	size := new(big.Float).Abs(s.sig)
	over := size.Cmp(exact(2)) >= 0 && s.sig.Cmp(exact(-2)) != 0
	units, exp := scaled(s.sig, 23), s.exp
	switch {
	case exp > 128 || over && exp == 128:
		if s.sig.Sign() < 0 {
			return 1<<31 | 255
		}
		return 1<<31 - 256 | 255
	case exp < -128:
		if s.sig.Sign() < 0 {
			return 1<<32 - 256
		}
		return 0
	}
	halved := over || exp == -128
	if halved {
		units, exp = scaled(units, -1), exp+1
	}
	down, rest := quarters(units)
	atMost := func(f float64) bool { return rest.Cmp(exact(f)) <= 0 }
	var odd int64
	switch {
	case (halved || exp == 128) && atMost(2), !halved && exp < 128 && atMost(1.5):
		odd = down + 1
	case !halved && exp < 128 && atMost(2.5):
		odd, exp = (down+2)/2, exp+1
	default:
		odd = down + 3
	}
	return uint32(odd>>1)<<8 | uint32(exp+127)
}

func ofQF32(q uint32) significand {
	return significand{scaled(exact(float64(int32(q)>>7|1)), -23), int(q&255) - 127}
}

// float32 rounds to the nearest even; there are no infinities.
func (s significand) float32() float32 {
	f, _ := scaled(s.sig, s.exp).Float32()
	return f
}

// product and sum are the instructions' with operands of float32, and sumQF32 with such of qf32.
func product(a, b significand) uint32 {
	negative := a.sig.Signbit() != b.sig.Signbit()
	q := significand{new(big.Float).SetPrec(1200).Mul(new(big.Float).Abs(a.sig), new(big.Float).Abs(b.sig)), a.exp + b.exp}.qf32()
	if negative {
		q ^= 1<<32 - 256
	}
	return q
}

func sum(a, b significand) uint32 {
	if a.sig.Signbit() && b.sig.Signbit() {
		return sumSigned(significand{new(big.Float).Neg(a.sig), a.exp}, significand{new(big.Float).Neg(b.sig), b.exp}) ^ (1<<32 - 256)
	}
	return sumSigned(a, b)
}

func sumSigned(a, b significand) uint32 {
	big, small := b, a
	if a.exp > b.exp {
		big, small = a, b
	}
	exp := big.exp - 24
	if big.sig.Sign() != 0 {
		exp = big.exp + big.sig.MantExp(nil) - 1
	}
	exp = max(exp, small.exp)
	return significand{exact(0).Add(scaled(a.sig, a.exp-exp), scaled(b.sig, b.exp-exp)), exp}.qf32()
}

// operands are floats of which sums may cancel; no result is subnormal or beyond float32.
func operands(r *rand.Rand) (a, b float32) {
	a = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20))
	b = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20))
	switch r.IntN(5) {
	case 0:
		b = -a * (1 + float32(r.IntN(16))/(1<<20))
	case 1:
		a, b = float32(r.IntN(4096)-2048), float32(r.IntN(4096)-2048)
	case 2:
		b = 0
	}
	return a, b
}

// ulps says how many of the numbers of a unit lie between two.
func ulps(got float32, want, unit float64) float64 { return math.Abs(float64(got)-want) / unit }

// unit returns the distance of floats at v's magnitude.
func unit(v float64) float64 { return math.Ldexp(1, math.Ilogb(math.Max(math.Abs(v), 0x1p-126))-23) }

// On V73 and V75 products are wrong by a unit of their last place at most. Sums are wrong by one of the larger operand's, or of
// their own where that is more.
func TestQfloatIsWrongByOneUnitAtMost(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	most := [2]float64{}
	for range sweep.Of(t, 20000, 200000) {
		a, b := operands(r)
		x, y := significandOf(math.Float32bits(a)), significandOf(math.Float32bits(b))
		p, s := float64(a)*float64(b), float64(a)+float64(b)
		most[0] = max(most[0], ulps(ofQF32(product(x, y)).float32(), p, unit(p)))
		most[1] = max(most[1], ulps(ofQF32(sum(x, y)).float32(), s, unit(math.Max(math.Max(math.Abs(float64(a)), math.Abs(float64(b))), math.Abs(s)))))
	}
	if most[0] > 1 || most[1] > 1 || most[0] < 0.9 || most[1] < 0.9 {
		t.Errorf("products are wrong by %v units, sums by %v, not by about 1", most[0], most[1])
	}
}

// extended rounds a number to V79's and V81's form, which knows whether a unit is to be added, and converts it to a float of so
// many places.
func (s significand) extended(places int) float64 {
	exp := s.exp
	if new(big.Float).Abs(s.sig).Cmp(exact(2)) >= 0 {
		s.sig, exp = scaled(s.sig, -1), exp+1
	}
	units := scaled(s.sig, places)
	floor, _ := units.Int64()
	if new(big.Float).SetInt64(floor).Cmp(units) > 0 {
		floor--
	}
	rest := exact(0).Sub(units, new(big.Float).SetInt64(floor)).Cmp(exact(0.5))
	if rest > 0 || rest == 0 && floor&1 == 1 {
		floor++
	}
	return math.Ldexp(float64(floor), exp-places)
}

// V79's results, converted at once, are IEEE's, so the emulator's own arithmetic is its.
func TestExtendedQfloatRoundsAsIEEE(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 1))
	for range sweep.Of(t, 20000, 200000) {
		a, b := operands(r)
		x, y := significandOf(math.Float32bits(a)), significandOf(math.Float32bits(b))
		p := significand{exact(0).Mul(x.sig, y.sig), x.exp + y.exp}
		if got := float32(p.extended(23)); got != a*b {
			t.Fatalf("%x * %x = %x, not %x", a, b, got, a*b)
		}
		exp := max(x.exp, y.exp)
		if x.sig.Signbit() != y.sig.Signbit() {
			exp-- // a bit more, where the sum may cancel by one
		}
		s := significand{exact(0).Add(scaled(x.sig, x.exp-exp), scaled(y.sig, y.exp-exp)), exp}
		if got := float32(s.extended(23)); got != a+b {
			t.Fatalf("%x + %x = %x, not %x", a, b, got, a+b)
		}
		// Of fp16 operands, whose results are normal.
		h, g := layout.F16(float32(r.NormFloat64())), layout.F16(float32(r.NormFloat64())+3)
		x, y = significandOf(math.Float32bits(layout.F32(h))), significandOf(math.Float32bits(layout.F32(g)))
		p = significand{exact(0).Mul(x.sig, y.sig), x.exp + y.exp}
		if want := layout.F32(h) * layout.F32(g); want*want > 0x1p-20 && float32(p.extended(10)) != layout.F32(layout.F16(want)) {
			t.Fatalf("fp16 %x * %x = %x", h, g, p.extended(10))
		}
	}
}

// qfloat opens the device with V75's arithmetic, or skips the test.
func qfloat(t *testing.T) *Device {
	text, err := os.ReadFile(made(t, qfloatProgram))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, Options{Program: text, KeepTCM: true})
}

// The emulator's qfloat in C and the model above are written by themselves.
func TestTheEmulatorsQfloatIsTheModels(t *testing.T) {
	if err := differsFromModel(t, qfloat(t), sweep.Of(t, 4, 32)); err != nil {
		t.Error(err)
	}
}

func differsFromModel(t *testing.T, d *Device, rounds int) error {
	r := rand.New(rand.NewPCG(43, 1))
	const n, width = 8, 512
	at := func(i int) uint32 { return device.TCMBytes + uint32(i)*4*n*width }
	one := significandOf(math.Float32bits(1))
	for round := range rounds {
		x, y := device.View[float32](d.Memory(), at(0), n*width), device.View[float32](d.Memory(), at(1), n*width)
		for i := range x {
			if x[i], y[i] = operands(r); round%2 == 1 {
				x[i], y[i] = math.Float32frombits(r.Uint32()&^(1<<30)), math.Float32frombits(r.Uint32()&^(1<<29))
			}
		}
		before := slices.Clone(x)
		if _, err := d.Run(t.Context(), []device.Packet{packet(device.OpMul, at(2), at(0), at(1), n, width, 4*width, 4*width, 4*width),
			packet(device.OpAdd, at(0), at(1), n, width, 4*width, 4*width, math.Float32bits(1))}); err != nil {
			return err
		}
		for i, got := range device.View[float32](d.Memory(), at(2), n*width) {
			p, q := significandOf(math.Float32bits(before[i])), significandOf(math.Float32bits(y[i]))
			once := ofQF32(product(one, q)).float32() // as OpAdd multiplies
			if want := ofQF32(product(p, q)).float32(); !same(got, want) {
				return fmt.Errorf("%x * %x = %x, not %x", before[i], y[i], got, want)
			}
			if want := ofQF32(sum(p, significandOf(math.Float32bits(once)))).float32(); !same(x[i], want) {
				return fmt.Errorf("%x + %x = %x, not %x", before[i], once, x[i], want)
			}
		}
	}
	return nil
}

// same compares floats by bits, but for what is beyond them, which qfloat has no infinity for.
func same(got, want float32) bool {
	return math.Float32bits(got) == math.Float32bits(want) || math.IsInf(float64(want), 0) && math.Float32bits(got)>>23&255 == 255 && math.Signbit(float64(got)) == math.Signbit(float64(want))
}

// A kind of what an operation writes.
type kind int

const (
	singles kind = iota
	halves
	integers // of 16 bits
	states   // of rows of scores: their sums are in units of 2^-24
	bytewise // which no float arithmetic makes
)

// inQfloat says what operations with float arithmetic write, range by range. On V73 and V75 a number may differ by so many units
// of the last place of the largest one beside it. Other operations have the definition's bits. (Random states of the
// delta rule grow from row to row and cancel.)
var inQfloat = map[device.Op]struct {
	writes []kind
	most   float64
}{
	device.OpDequant:     {[]kind{halves}, 2},
	device.OpVLUT16:      {[]kind{halves}, 1},
	device.OpSoftmax:     {[]kind{halves, states, halves}, 1},
	device.OpRMSNorm:     {[]kind{singles}, 4},
	device.OpLayerNorm:   {[]kind{singles}, 8},
	device.OpQuantize:    {[]kind{integers, singles}, 1},
	device.OpScale:       {[]kind{singles}, 2},
	device.OpAdd:         {[]kind{singles}, 3},
	device.OpRope:        {[]kind{singles}, 4},
	device.OpGLU:         {[]kind{singles}, 16},
	device.OpToTiles:     {[]kind{halves}, 1},
	device.OpFromTiles:   {[]kind{singles, bytewise}, 1},
	device.OpRowsToTiles: {[]kind{halves, singles}, 1},
	device.OpTilesToRows: {[]kind{singles}, 4},
	device.OpMul:         {[]kind{singles}, 1},
	device.OpConv:        {[]kind{singles, singles}, 16},
	device.OpGates:       {[]kind{singles}, 6},
	device.OpDelta:       {[]kind{singles, singles}, 2000},
	device.OpFold:        {[]kind{singles, bytewise}, 1},
}

// apart returns by how many units of the last place of the largest number numbers differ.
func apart(got, want []byte, k kind) float64 {
	n, most, differ, last := len(want)/4, 0.0, 0.0, 0.0
	number := func(b []byte, i int) float64 { return float64(device.View[float32](b, 0, n)[i]) }
	places := 23
	switch k {
	case bytewise:
		if !bytes.Equal(got, want) {
			return math.Inf(1)
		}
		return 0
	case halves:
		n, places = len(want)/2, 10
		number = func(b []byte, i int) float64 {
			h := device.View[uint16](b, 0, n)[i]
			return float64(layout.F32(min(h&0x7fff, 0x7bff) | h&0x8000)) // qfloat goes on where fp16 has infinities
		}
	case integers:
		n, last = len(want)/2, 1
		number = func(b []byte, i int) float64 { return float64(device.View[int16](b, 0, n)[i]) }
	case states:
		n, places = len(want)/device.StateBytes, 10
		number = func(b []byte, i int) float64 {
			s := device.View[uint32](b, 0, n*ref.StateWords)[i*ref.StateWords:]
			return float64(s[ref.StateSumHigh])*0x1p8 + float64(s[ref.StateSumLow])*0x1p-24
		}
	}
	for i := range n {
		g, w := number(got, i), number(want, i)
		if g != w && g-w == g-w {
			most, differ = max(most, math.Abs(w)), max(differ, math.Abs(g-w))
		}
		if w-w == 0 {
			most = max(most, math.Abs(w))
		}
	}
	if last == 0 {
		last = math.Ldexp(1, math.Ilogb(max(most, 0x1p-24))-places)
	}
	return differ / last
}

// mostApart runs each operation, in so many cases, and says by how much it is wrong at most.
func mostApart(t *testing.T, d *Device, cases int) (most map[device.Op]float64, err error) {
	want := make([]byte, drawn.Memory)
	most = map[device.Op]float64{}
	for _, memory := range [][]byte{d.Memory(), want} { // where no packet writes
		ref.ExpTable(device.View[uint16](memory, drawn.Table, device.ExpTableBytes/2))
	}
	for _, op := range device.Ops() {
		g := drawn.New(uint64(op), make([]byte, drawn.Memory))
		for range cases {
			p := g.Of(op)
			g.Operands(d.Memory())
			g.Operands(want)
			if _, err := d.Run(t.Context(), []device.Packet{p}); err != nil {
				return most, err
			}
			device.Define(want, p)
			operands, _ := p.Operands(drawn.Memory)
			written := slices.DeleteFunc(operands, func(o device.Operand) bool { return o.Rule&device.Writes == 0 || o.Rule&device.Scratch != 0 })
			for i, o := range written {
				k := bytewise
				if kinds := inQfloat[op].writes; kinds != nil {
					k = kinds[i]
				}
				// All rows at once: a bound is in units of the largest number of an operand.
				most[op] = max(most[op], apart(d.Memory()[o.Offset:][:o.Size()], want[o.Offset:][:o.Size()], k))
			}
		}
	}
	return most, nil
}

func TestKernelsInQfloatAreWithinTheirBounds(t *testing.T) {
	most, err := mostApart(t, qfloat(t), sweep.Of(t, 8, 20))
	if err != nil {
		t.Fatal(err)
	}
	for op, by := range most {
		t.Logf("%v: %.2f", op, by)
		if by > inQfloat[op].most {
			t.Errorf("%v is wrong by %v units, not %v at most", op, by, inQfloat[op].most)
		}
	}
}

// What a chip of V79 and later has not: instructions of IEEE floats, of which conversions of integers and qfloat are
// none. A qfloat is not stored: it would lose bits.
var (
	ieeeFloat    = regexp.MustCompile(`\.(sf|hf|bf) \+?= v(add|sub|mpy|dmpy|fmin|fmax|cvt|abs|fneg|min|max)|= v(add|sub|mpy|dmpy|cvt)\S*\(v[0-9:]+\.(sf|hf|bf)`)
	setsVector   = regexp.MustCompile(`\s(v[0-9]+(?::[0-9]+)?)(\.[a-z0-9]+)? \+?= `)
	storesVector = regexp.MustCompile(`vmemu?\([^)]*\)(?::nt)? = (v[0-9]+)(\.new)?`)
)

func disassembled(t *testing.T, name string) string {
	t.Helper()
	file := made(t, name)
	out, err := exec.Command("llvm-objdump-19", "-d", "--no-show-raw-insn", "--mcpu=hexagonv73", "--mattr=+hvxv73,+hvx-length128b,+hvx-ieee-fp,+hvx-qfloat", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLibrariesOfChipsHaveNoInstructionsOfIEEEFloats(t *testing.T) {
	if _, err := exec.LookPath("llvm-objdump-19"); err != nil {
		t.Skip(err)
	}
	for _, chip := range []string{"v79", "v81", "v73", "v75"} {
		qfloats := 0
		holds := map[string]bool{} // registers that hold a qfloat
		for _, packet := range strings.Split(disassembled(t, "build/"+chip+"/liblutra_skel.so"), "}") {
			before := maps.Clone(holds)
			for _, m := range setsVector.FindAllStringSubmatch(packet, -1) {
				made := strings.HasPrefix(m[2], ".qf")
				for _, register := range strings.Split(m[1], ":") {
					holds["v"+strings.TrimPrefix(register, "v")] = made
				}
				if made {
					qfloats++
				}
			}
			for _, line := range strings.Split(packet, "\n") {
				if ieeeFloat.MatchString(line) && !strings.Contains(line, ".qf") {
					t.Fatalf("%s: %s", chip, line)
				}
			}
			for _, m := range storesVector.FindAllStringSubmatch(packet, -1) {
				if chip > "v75" && (m[2] == "" && before[m[1]] || m[2] != "" && holds[m[1]]) {
					t.Fatalf("%s stores a qfloat: %s", chip, packet)
				}
			}
		}
		if qfloats < 500 {
			t.Errorf("%s: %d qfloat instructions", chip, qfloats)
		}
	}
	for _, gone := range []string{"v0.sf = vmpy(v1.sf,v2.sf)", "v0.sf = vadd(v1.sf,v2.sf)", "v0.hf = vadd(v1.hf,v2.hf)", "v1:0.sf = vcvt(v2.hf)", "v0.hf += vmpy(v1.hf,v2.hf)"} {
		if !ieeeFloat.MatchString(gone) {
			t.Errorf("%q is taken for an instruction of V79", gone)
		}
	}
}

// What a library with platform_sdk.c leaves open is the DSP's system: what the stubs of the SDK's headers declare, FastRPC's
// queue and two functions of C.
func TestLibrariesOfChipsLeaveOnlyTheSystemOpen(t *testing.T) {
	if _, err := exec.LookPath("llvm-readelf-19"); err != nil {
		t.Skip(err)
	}
	declared := "memset( memcpy( "
	headers, err := filepath.Glob(filepath.Join(sources, "stubs/*.h"))
	if err != nil || len(headers) == 0 {
		t.Fatal(headers, err)
	}
	for _, header := range append(headers, filepath.Join(sources, "device/platform.h")) {
		text, err := os.ReadFile(header)
		if err != nil {
			t.Fatal(err)
		}
		declared += string(text)
	}
	for _, chip := range []string{"v73", "v75", "v79", "v81"} {
		out, err := exec.Command("llvm-readelf-19", "--dyn-syms", made(t, "build/"+chip+"-stubs.so")).Output()
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, line := range strings.Split(string(out), "\n") {
			if f := strings.Fields(line); len(f) == 8 && f[6] == "UND" {
				if open++; strings.HasPrefix(f[7], "platform_") || !strings.Contains(declared, f[7]+"(") {
					t.Errorf("%s: nobody has %s", chip, f[7])
				}
			}
		}
		if open < 20 {
			t.Errorf("%s: %d symbols are open", chip, open)
		}
		library, err := os.ReadFile(made(t, "build/"+chip+"-stubs.so"))
		if err != nil {
			t.Fatal(err)
		}
		for instruction, packets := range tileUnit {
			var code []byte
			for _, word := range packets {
				code = binary.LittleEndian.AppendUint32(code, word)
			}
			if !bytes.Contains(library, code) {
				t.Errorf("%s: there is no %s", chip, instruction)
			}
		}
	}
}

// tileUnit holds the instructions of device/hmx.h as target/hexagon/imported/hmx/encode_ext.def of Qualcomm's QEMU has
// them. Bits 14 and 15 say whether a word ends its packet.
var tileUnit = map[string][]uint32{
	"bias = mxmem2(r0)": {load(0, 0b1_1, 0b0000_0011_1111_1110)},
	"bias = mxmem(r0)":  {load(0, 0b1_1, 0b0000_0011_1111_1111)},
	"activation.hf = mxmem(r0, r1):deep, weight.hf = mxmem(r2, r3)":   {load(0, 0b0_1, 0b00001_1110_0010), load(2, 0b1_1, 0b1_00011_1110_1111)},
	"activation.ub = mxmem(r0, r1):deep:cm, weight.b = mxmem(r2, r3)": {load(0, 0b0_1, 0b00001_1110_0001), load(2, 0b1_1, 0b1_00011_1110_0000)},
	"mxclracc":                               {store(0, 0b0_1_0001)},
	"mxclracc.hf":                            {store(0, 0b0_1_0011)},
	"cvt.hf = acc(r0); mxmem(r1, r2) = cvt":  {store(0, 0b11010_0001_0000), store(1, 0b00010_0001_1000)},
	"mxmem(r0, r1):after:retain:cm.ub = acc": {store(0, 0b00001_0000_1111)},
}

// load and store are words of the tile unit. A store ends its packet.
func load(register, end, rest uint32) uint32 {
	return 0b1001_0010_000<<21 | register<<16 | end<<14 | rest
}
func store(register, rest uint32) uint32 { return 0b1010_0110_111<<21 | register<<16 | 3<<14 | rest }
