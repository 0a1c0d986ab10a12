package emit

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// VexSuffix ends the names of kernels for processors with AVX-VNNI: VPDPBUSD
// of 256 bits in VEX encoding, without AVX-512.
const VexSuffix = "AVXVNNI"

// vexHeader holds the macro that encodes it, since Go's assembler and avo know
// the instruction in EVEX encoding alone.
const vexHeader = "vex_amd64.h"

// UseVEX makes generation end with encodeVEX.
func UseVEX() { pass.Compile = pass.Concat(pass.Compile, pass.Func(encodeVEX)) }

// encodeVEX replaces VPDPBUSD in AVX-VNNI kernels, once registers are handed
// out, by the macro of vexHeader.
func encodeVEX(f *ir.File) error {
	used := false
	for _, fn := range f.Functions() {
		if !strings.Contains(fn.Name, VexSuffix) {
			continue
		}
		for _, i := range fn.Instructions() {
			if i.Opcode != "VPDPBUSD" {
				continue
			}
			used = true
			var n [3]int
			for k, op := range i.Operands {
				r, ok := op.(reg.VecPhysical)
				if !ok || r.Size() != 32 || r.PhysicalIndex() > 15 {
					return fmt.Errorf("%s: VPDPBUSD has no VEX encoding of %v here", fn.Name, op.Asm())
				}
				n[k] = int(r.PhysicalIndex())
			}
			i.Opcode = fmt.Sprintf("VPDPBUSD_VEX(%d, %d, %d)", n[0], n[1], n[2])
			i.Operands, i.ISA = []operand.Op{}, []string{"AVXVNNI"}
		}
		fn.ISA = nil
		if err := pass.RequiredISAExtensions(fn); err != nil {
			return err
		}
	}
	if used {
		f.Includes = append(f.Includes, vexHeader)
	}
	return nil
}
