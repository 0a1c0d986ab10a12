package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Products of panels by AMX. A tile of activations is 16 tokens of a group, 32 bytes of a record each. A tile of
// weights is the group of one band, eight words. Their product is 16 x 16 int32 sums, which meet their scales by way of
// memory. While tiles are in use a core of Emerald Rapids multiplies one vector of 512 bits a cycle, where it
// multiplies two without them; additions stay as fast. So sums become 1.5·2²³ + Σ as float32 by an integer
// addition, as in gfni.go, and the float operations that scale them bind:
//
//	             float operations, 16 tokens   cycles of a group and band   of VPDPBUSD at the same share
//	Q4, Q8, FP4  32                            42                           80
//	Q4M, Q41     48                            60                           88
//	Q6           64                            80                           97
//
// A product takes 52 cycles, and a store that waits for it holds up all tiles. Three groups are
// therefore under way, across the ends of runs. While one is scaled, the sums of the next are stored and the products
// of a third begin. A run is the groups of a panel for one band and 16 tokens at most.
//
// Panels are as gfni_panel.go states, but codes of Q4, Q6, Q8 and FP4 have the sign of what they stand for.
// Halves of groups of Q6 have tiles of 16 bytes and four words, and sums that fit int16 (acts.Limited).

// Offsets in a run, kernels/grouped/amx_amd64.go.
const (
	runActs   = 0
	runPanel  = 8
	runY      = 16
	runTokens = 24
	runGroups = 32
	runFetch  = 40
	runBytes  = 48
)

const (
	amxTokens = 16 // of a run, at most
	amxStep   = 4  // sums of so many tokens are scaled, or not, together
	amxAhead  = 2  // groups whose products are under way
)

// Tiles, as kernels/grouped/amx_amd64.go sizes them.
const (
	amxSums emit.Tile = iota
	amxActs
	amxCodes
	amxSums1 // of the second half of a group
)

// AMX emits them.
func AMX() {
	for _, p := range packings {
		if !p.least() {
			gfniWriter(p, true)
		}
	}
	for _, f := range gfniPanels {
		amxRuns(f)
	}
}

// amx is a routine under construction.
type amx struct {
	gfniPanel
	lda, lda3      reg.GPVirtual // distance of records, once and three times
	planes         reg.GPVirtual // of words of codes, and of rows of sums
	tokens         reg.GPVirtual
	aheadA, aheadB reg.GPVirtual // activations and codes of the group to begin
	acts, panel    reg.GPVirtual // of the group to be scaled
	stored, free   reg.GPVirtual // its sums, and where the next one's go
	sums           []reg.VecVirtual
	magic          reg.VecVirtual
	labels         int
}

// amxRuns emits the product of some runs.
func amxRuns(f gfniPanel) {
	name := "amx" + f.name + "AVX512"
	emit.Text(name, "func(runs *byte, n int, ld int, lda int, sizes *byte, sums *byte, lines int)")
	amxTiles.Add(0, fmt.Sprintf("%q", f.name))
	emit.Contract(name+" does n ≥ 1 runs: it adds to y[tokens][16] (ld values a token) the products of groups ≥ 2 groups",
		"of a panel with rows of activation records that are lda bytes apart. A further run follows, whose first two",
		"groups are read. sizes are of tiles, and sums are 4 KiB to work in. It prefetches lines ≥ 1 lines of 64 bytes",
		"a group from where the run says on, which need not be memory at all.")
	arg := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	k := &amx{gfniPanel: f, sums: row(amxTokens), magic: ZMM(), lda: arg("lda"), lda3: GP64(), free: arg("sums"), stored: GP64(), planes: GP64()}
	k.aheadA, k.aheadB, k.acts, k.panel, k.tokens = GP64(), GP64(), GP64(), GP64(), GP64()
	emit.TileConfigure(Mem{Base: arg("sizes")})
	LEAQ(Mem{Base: k.lda, Index: k.lda, Scale: 2}, k.lda3)
	LEAQ(Mem{Base: k.free, Disp: planeBytes}, k.stored)
	MOVQ(U32(pairPlane), k.planes)
	emit.FillLanes(magicBits, k.magic)
	for _, v := range k.sums {
		emit.Zero(v)
	}
	fetch, left, last := GP64(), GP64(), AllocLocal(8)

	k.lookAhead(0)
	k.begin(false)
	k.begin(true)
	k.turn()

	Label("run")
	run := arg("runs")
	MOVQ(Mem{Base: run, Disp: runActs}, k.acts)
	MOVQ(Mem{Base: run, Disp: runPanel}, k.panel)
	MOVQ(Mem{Base: run, Disp: runTokens}, k.tokens)
	MOVQ(Mem{Base: run, Disp: runGroups}, left)
	MOVQ(Mem{Base: run, Disp: runFetch}, fetch)
	unit := AllocLocal(8)
	if k.unit > 1 {
		MOVQ(k.groupsOfUnit(), unit)
	} else {
		k.eachY(func(i int, y Mem) { VMOVUPS(y, k.sums[i]) })
	}
	MOVQ(U32(0), last)
	SUBQ(Imm(amxAhead), left)
	JEQ(LabelRef("next"))
	Label("group")
	k.begin(true)
	line := arg("lines")
	Label("fetch")
	PREFETCHT1(Mem{Base: fetch})
	ADDQ(Imm(planeBytes), fetch)
	DECQ(line)
	JNE(LabelRef("fetch"))
	k.scale()
	k.turn()
	if k.unit > 1 {
		DECQ(unit)
		JNE(LabelRef("within"))
		MOVQ(k.groupsOfUnit(), unit)
		k.end()
		Label("within")
	}
	ADDQ(Imm(acts.ActRecord), k.acts)
	ADDQ(U32(uint32(k.groupBytes())), k.panel)
	DECQ(left)
	JNE(LabelRef("group"))
	Label("next")
	CMPQ(last, Imm(0))
	JNE(LabelRef("end"))
	Comment("the last groups of a run, while the first ones of the next begin")
	k.lookAhead(runBytes)
	MOVQ(U32(amxAhead), left)
	MOVQ(left, last)
	JMP(LabelRef("group"))
	Label("end")
	if k.unit == 1 {
		k.eachY(func(i int, y Mem) { VMOVUPS(k.sums[i], y) })
	}
	ADDQ(Imm(runBytes), parameter("runs"))
	DECQ(parameter("n"))
	JNE(LabelRef("run"))
	emit.TileRelease()
	emit.Done()
}

// parameter returns the place of a parameter.
func parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// lookAhead has groups begin at the start of a run.
func (k *amx) lookAhead(run int) {
	runs := Load(Param("runs"), GP64())
	MOVQ(Mem{Base: runs, Disp: run + runActs}, k.aheadA)
	MOVQ(Mem{Base: runs, Disp: run + runPanel}, k.aheadB)
}

// begin begins the products of the next group, and stores the sums of the group before, if there is one.
func (k *amx) begin(before bool) {
	halves := []emit.Tile{amxSums, amxSums1}
	if k.unit == 1 {
		halves = halves[:1]
	}
	for h, sums := range halves {
		emit.TileLoad(Mem{Base: k.aheadA, Index: k.lda, Scale: 1, Disp: 16 * h}, amxActs)
		emit.TileLoad(Mem{Base: k.aheadB, Index: k.planes, Scale: 1, Disp: 4 * h * pairPlane}, amxCodes)
		if before {
			emit.TileStore(sums, Mem{Base: k.free, Index: k.planes, Scale: 1, Disp: h * amxHalf})
		}
		emit.TileZero(sums)
		emit.TileDot(amxCodes, amxActs, sums, true, k.name != "Least")
	}
	ADDQ(Imm(acts.ActRecord), k.aheadA)
	ADDQ(U32(uint32(k.groupBytes())), k.aheadB)
}

// amxHalf is the distance of the sums of a second half of groups.
const amxHalf = amxTokens * pairPlane

// turn changes the places of sums.
func (k *amx) turn() {
	t := GP64()
	MOVQ(k.stored, t)
	MOVQ(k.free, k.stored)
	MOVQ(t, k.free)
}

// upTo emits what is done for each token there is, up to amxTokens, and asks before every step-th.
func (k *amx) upTo(step int, token func(i int)) {
	k.labels++
	done := fmt.Sprintf("tokens%d", k.labels)
	for i := range amxTokens {
		if i > 0 && i%step == 0 {
			CMPQ(k.tokens, Imm(uint64(i)))
			JLE(LabelRef(done))
		}
		token(i)
	}
	Label(done)
}

// eachY runs f with the addresses of the run's y.
func (k *amx) eachY(f func(i int, y Mem)) {
	y, ld := Load(Param("runs"), GP64()), Load(Param("ld"), GP64())
	MOVQ(Mem{Base: y, Disp: runY}, y)
	SHLQ(Imm(2), ld)
	k.upTo(1, func(i int) {
		if i > 0 {
			ADDQ(ld, y)
		}
		f(i, Mem{Base: y})
	})
}

// scale adds the sums of a group, scaled, to y's.
func (k *amx) scale() {
	vec := func(i int) reg.VecVirtual {
		v := ZMM()
		VMOVUPS(Mem{Base: k.panel, Disp: vector(i, 0)}, v)
		return v
	}
	d, off := vec(0), vec(1) // of Q6 the scales of halves
	var least reg.VecVirtual
	if k.name == "Least" {
		least = vec(2)
	}
	rows := GP64()
	MOVQ(k.acts, rows)
	k.upTo(amxStep, func(i int) {
		at := func(disp int) Mem {
			m := Mem{Base: rows, Disp: disp}
			if i%3 > 0 {
				m.Index, m.Scale = k.lda, uint8(i%3)
			}
			return m
		}
		if i > 0 && i%3 == 0 {
			ADDQ(k.lda3, rows)
		}
		v, sum := ZMM(), Mem{Base: k.stored, Disp: i * pairPlane}
		if k.unit > 1 {
			VPMADDWD(sum, d, v)
			VPDPWSSD(sum.Offset(amxHalf), off, v)
			VCVTDQ2PS(v, v)
		} else {
			VPADDD(sum, k.magic, v)
			VFMADD213PS(off, d, v)
		}
		if least != nil {
			VFNMADD231PS_BCST(at(acts.RecSum), least, v)
		}
		VFMADD231PS_BCST(at(acts.RecScale), v, k.sums[i])
	})
}

// end adds the sums of a unit, scaled, to y's.
func (k *amx) end() {
	d := ZMM()
	VMOVUPS(Mem{Base: k.panel, Disp: vector(k.vectors-1, 0)}, d)
	k.eachY(func(i int, y Mem) {
		VFMADD213PS(y, d, k.sums[i])
		VMOVUPS(k.sums[i], y)
	})
	for _, v := range k.sums {
		emit.Zero(v)
	}
}
