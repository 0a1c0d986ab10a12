package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// instruction is a line of a disassembly.
type instruction struct {
	at   uint64
	text string // name, tab, operands
	to   uint64 // where it branches to within the routine; 0: it does not
}

var (
	lineOf   = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(\S.*?)\s*$`)
	branchOf = regexp.MustCompile(`^(b|b\.\w+|cbn?z|tbn?z)\t.*?0x([0-9a-f]+)(?: <.*>)?$`)
)

// disassemble returns the routine whose symbol ends in name.
func (t tools) disassemble(object, name string) ([]instruction, error) {
	symbols, err := t.run("", "llvm-objdump", "--syms", object)
	if err != nil {
		return nil, err
	}
	symbol := ""
	for l := range strings.Lines(symbols) {
		if f := strings.Fields(l); len(f) > 0 && (f[len(f)-1] == name || strings.HasSuffix(f[len(f)-1], "."+name+".abi0")) {
			symbol = f[len(f)-1]
		}
	}
	if symbol == "" {
		return nil, fmt.Errorf("%s has no routine %s", object, name)
	}
	out, err := t.run("", "llvm-objdump", "-d", "--no-show-raw-insn", "--mattr=+all", "--disassemble-symbols="+symbol, object)
	if err != nil {
		return nil, err
	}
	var code []instruction
	for l := range strings.Lines(out) {
		m := lineOf.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		at, _ := strconv.ParseUint(m[1], 16, 64)
		i := instruction{at: at, text: m[2]}
		if b := branchOf.FindStringSubmatch(m[2]); b != nil {
			i.to, _ = strconv.ParseUint(b[2], 16, 64)
		}
		code = append(code, i)
	}
	return code, nil
}

// loop is the instructions [lo, hi] that a branch back closes.
type loop struct{ lo, hi int }

func (l loop) within(outer loop) bool { return l != outer && l.lo >= outer.lo && l.hi <= outer.hi }

// turn writes out one turn of an outermost loop, the which-th or the longest, with
// its inner loops taken as often as trips says, or once.
func turn(code []instruction, which int, trips []int) ([]string, error) {
	var loops []loop
	for hi, i := range code {
		if lo := slices.IndexFunc(code, func(c instruction) bool { return c.at == i.to }); i.to != 0 && lo >= 0 && lo <= hi {
			loops = append(loops, loop{lo, hi})
		}
	}
	var outermost []loop
	for _, l := range loops {
		if !slices.ContainsFunc(loops, l.within) {
			outermost = append(outermost, l)
		}
	}
	if len(outermost) < max(which, 1) {
		return nil, errors.New("it has no such loop")
	}
	chosen := slices.MaxFunc(outermost, func(a, b loop) int { return a.hi - a.lo - (b.hi - b.lo) })
	if which > 0 {
		chosen = outermost[which-1]
	}
	var inner []loop
	for _, l := range loops {
		if l.within(chosen) {
			inner = append(inner, l)
		}
	}
	if len(trips) > 0 && len(inner) != len(trips) {
		return nil, fmt.Errorf("it has %d inner loops, and turns for %d are given", len(inner), len(trips))
	}
	block := []string{"top:"}
	for i := chosen.lo; i <= chosen.hi; i++ {
		block = append(block, plain(code[i]))
		for n, l := range inner {
			if l.hi == i && len(trips) > 0 {
				for range trips[n] - 1 {
					for _, c := range code[l.lo : l.hi+1] {
						block = append(block, plain(c))
					}
				}
			}
		}
	}
	return block, nil
}

// plain gives an instruction without addresses, which llvm-mca's assembler would not take.
func plain(i instruction) string {
	text, _, _ := strings.Cut(i.text, " <")
	if i.to == 0 {
		return text
	}
	return text[:strings.LastIndex(text, "0x")] + "top"
}
