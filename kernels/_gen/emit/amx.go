package emit

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// amxHeader holds the macros that encode AMX, which Go's assembler and avo lack.
const amxHeader = "amx_amd64.h"

// Tile is a register of AMX, TMM0 to TMM7.
type Tile uint8

// TileLoad reads a tile at m, whose index is the distance of rows in bytes and has no scale.
func TileLoad(m Mem, t Tile) { amx("TILELOADD", []Op{m}, t) }

// TileStore writes a tile to m, as TileLoad reads it.
func TileStore(t Tile, m Mem) { amx("TILESTORED", []Op{m}, t) }

// TileZero clears a tile.
func TileZero(t Tile) { amx("TILEZERO", nil, t) }

// TileConfigure reads the sizes of tiles, 64 bytes at m, which has no index. TileRelease is to follow before the
// routine returns: a thread that has tiles takes a context switch of 8 KiB more.
func TileConfigure(m Mem) { amx("LDTILECFG", []Op{m}) }

// TileRelease forgets sizes and contents of tiles.
func TileRelease() { amx("TILERELEASE", nil) }

// TileDot adds to int32 sums[rows][columns] the products of a[rows][k] and b[k/4][columns][4], bytes that are signed or
// not.
func TileDot(b, a, sums Tile, signedA, signedB bool) {
	name := func(signed bool) string {
		if signed {
			return "S"
		}
		return "U"
	}
	amx("TDPB"+name(signedA)+name(signedB)+"D", nil, b, a, sums)
}

// amx emits an instruction of amxHeader, which encodeAMX spells when registers are handed out.
func amx(name string, memory []Op, tiles ...Tile) {
	i := &ir.Instruction{Opcode: amxMark + name, Operands: memory, Inputs: memory, ISA: []string{"AMXINT8"}}
	for _, t := range tiles {
		i.Operands = append(i.Operands, Imm(uint64(t)))
	}
	Instruction(i)
}

// amxMark begins the names of instructions that are yet to be encoded.
const amxMark = "AMX "

// UseAMX makes generation end with encodeAMX.
func UseAMX() { pass.Compile = pass.Concat(pass.Compile, pass.Func(encodeAMX)) }

// encodeAMX replaces instructions of AMX by the macros of amxHeader.
func encodeAMX(f *ir.File) error {
	used := false
	for _, fn := range f.Functions() {
		for _, i := range fn.Instructions() {
			name, marked := strings.CutPrefix(i.Opcode, amxMark)
			if !marked {
				continue
			}
			used = true
			var tiles, memory []string
			for _, op := range i.Operands {
				switch op := op.(type) {
				case Mem:
					base, ok := op.Base.(reg.Physical)
					if !ok || op.Symbol.Name != "" || op.Base.Kind() != reg.KindGP {
						return fmt.Errorf("%s: %s has no encoding of %v", fn.Name, name, op.Asm())
					}
					memory = append(memory, fmt.Sprint(base.PhysicalIndex()))
					if op.Index != nil {
						memory = append(memory, fmt.Sprint(op.Index.(reg.Physical).PhysicalIndex()))
					}
					memory = append(memory, fmt.Sprint(op.Disp))
				default:
					tiles = append(tiles, strings.TrimPrefix(op.Asm(), "$"))
				}
			}
			i.Opcode, i.Operands = name+"("+strings.Join(append(tiles, memory...), ", ")+")", []Op{}
		}
	}
	if used {
		f.Includes = append(f.Includes, amxHeader)
	}
	return nil
}
