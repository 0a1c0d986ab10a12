// Package emit holds what all generators share: how a kernel begins and ends, constant
// tables, rows a stride apart, and the encoding of AVX-VNNI.
package emit

import (
	"encoding/binary"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// Text begins a kernel. None keeps its pointers, so arguments need not escape.
func Text(name, signature string) {
	begun = name
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

// mostNoSplit is the largest frame that the linker lets a routine have without
// asking whether the stack is large enough.
const mostNoSplit = 640

// SplitLarge makes routines with larger frames ask.
func SplitLarge() {
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(func(f *ir.Function) error {
		if f.LocalSize > mostNoSplit {
			f.Attributes &^= attr.NOSPLIT
		}
		return nil
	}))
}

// codeLine is the size of a line of the instruction cache.
const codeLine = 64

// AlignRoutines begins every routine on a line, where Go would align it to half of one. The speed of some
// loops otherwise changes by 4 to 7 % with the size of the code before them.
func AlignRoutines() {
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(func(f *ir.Function) error {
		f.Nodes = append([]ir.Node{&ir.Instruction{Opcode: "PCALIGN", Operands: []Op{Imm(codeLine)}}}, f.Nodes...)
		return nil
	}))
}

// Contract documents the kernel begun by text, in its stub and in the assembly.
func Contract(lines ...string) {
	Doc(lines...)
	Comment(lines...)
}

// Table emits constant bytes of a whole number of 8-byte words.
func Table(name string, b []byte) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := 0; i < len(b); i += 8 {
		DATA(i, U64(binary.LittleEndian.Uint64(b[i:])))
	}
	return m
}

// Fill makes n bytes from a function of their index.
func Fill(n int, f func(i int) byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = f(i)
	}
	return b
}

// Repeat16 doubles 16 bytes, for instructions that work on 128-bit lanes.
func Repeat16(b []byte) []byte { return append(b[:16:16], b[:16]...) }

// Words makes n little-endian 16-bit words of one value.
func Words(n int, v uint16) []byte {
	return Fill(2*n, func(i int) byte { return byte(v >> (8 * (i % 2))) })
}

func ZeroY(y reg.VecVirtual) { VPXOR(y, y, y) }

func Arg(name string) reg.Register { return Load(Param(name), GP64()) }

func Done() {
	VZEROUPPER()
	RET()
}

func Pow3(g int) int {
	n := 1
	for range g {
		n *= 3
	}
	return n
}

// AlignedLocal returns memory in the routine's frame that begins on a cache line.
func AlignedLocal(bytes int) reg.GPVirtual {
	p := GP64()
	LEAQ(AllocLocal(bytes+64).Offset(63), p)
	ANDQ(I8(-64), p)
	return p
}
