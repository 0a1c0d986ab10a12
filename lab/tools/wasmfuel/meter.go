package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sections of a module (WebAssembly Core Specification 2.0, §5.5.2).
const (
	importSection = 2
	globalSection = 6
	exportSection = 7
	codeSection   = 10
)

// fuelExport is the name of the global that counts.
const fuelExport = "lutra_fuel"

// section is a section of a module.
type section struct {
	id   byte
	body []byte
}

// meter returns the module with counting added. call names the function to call when there is no fuel
// left, of those that the module imports without parameters.
func meter(module []byte, call string) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the module is damaged or has an instruction that is unknown here: %v", r)
		}
	}()
	const header = 8 // magic number and version
	if len(module) < header || string(module[:4]) != "\x00asm" {
		return nil, errors.New("it is no WebAssembly module")
	}
	var sections []section
	var imports imported
	for r := (reader{module[header:]}); len(r.rest) > 0; {
		s := section{id: r.byte()}
		s.body = r.take(int(r.uint()))
		switch s.id {
		case 0: // custom: names
			continue
		case importSection:
			imports.read(s.body, call)
		case globalSection:
			imports.globals += (&reader{s.body}).uint()
		}
		sections = append(sections, s)
	}
	if !imports.found {
		return nil, fmt.Errorf("it imports no function %q", call)
	}
	m := metering{fuel: imports.globals, size: imports.globals + 1, call: imports.call}
	out = append(out, module[:header]...)
	for _, s := range sections {
		switch s.id {
		case globalSection: // (global (mut i64) (i64.const 0)) (global (mut i32) (i32.const 0))
			s.body = appended(s.body, 2, []byte{0x7e, 1, 0x42, 0, 0x0b, 0x7f, 1, 0x41, 0, 0x0b})
		case exportSection:
			entry := append([]byte{byte(len(fuelExport))}, fuelExport...)
			s.body = appended(s.body, 1, binary.AppendUvarint(append(entry, 3), m.fuel))
		case codeSection:
			s.body = m.code(s.body)
		}
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(s.body)))
		out = append(out, s.body...)
	}
	return out, nil
}

// appended adds n encoded entries to a section that is a list.
func appended(body []byte, n uint64, entries []byte) []byte {
	r := reader{body}
	out := binary.AppendUvarint(nil, r.uint()+n)
	return append(append(out, r.rest...), entries...)
}

// imported is what a module's imports say.
type imported struct {
	globals   uint64
	functions uint64
	call      uint64 // the index of the function to call
	found     bool
}

// read takes in an import section.
func (i *imported) read(body []byte, call string) {
	r := reader{body}
	for range r.uint() {
		r.take(int(r.uint()))
		name := string(r.take(int(r.uint())))
		switch r.byte() {
		case 0: // function
			r.uint()
			if name == call {
				i.call, i.found = i.functions, true
			}
			i.functions++
		case 1: // table
			r.byte()
			r.limits()
		case 2: // memory
			r.limits()
		case 3: // global
			r.take(2)
			i.globals++
		}
	}
}

// metering is what counting needs: two globals and a function.
type metering struct {
	fuel uint64 // i64
	size uint64 // i32: how much a copy or a fill moves
	call uint64 // the function to call below 0
}

// code returns a code section with counting added.
func (m *metering) code(body []byte) []byte {
	r := reader{body}
	n := r.uint()
	out := binary.AppendUvarint(nil, n)
	for range n {
		f := m.function(r.take(int(r.uint())))
		out = binary.AppendUvarint(out, uint64(len(f)))
		out = append(out, f...)
	}
	return out
}

// function returns a function's locals and instructions with counting added.
func (m *metering) function(body []byte) []byte {
	r := reader{body}
	for range r.uint() { // locals
		r.uint()
		r.byte()
	}
	out := append([]byte{}, body[:len(body)-len(r.rest)]...)
	out = m.spend(out, []byte{0x42, 1}) // i64.const 1
	for len(r.rest) > 0 {
		before := r.rest
		op := r.byte()
		moves := r.operands(op)
		instruction := before[:len(before)-len(r.rest)]
		if moves { // the number of bytes is on top of the stack
			out = binary.AppendUvarint(append(out, 0x24), m.size) // global.set
			out = m.spend(out, binary.AppendUvarint([]byte{0x23}, m.size), 0xad, 0x42, 6, 0x88)
			out = binary.AppendUvarint(append(out, 0x23), m.size) // global.get
		}
		out = append(out, instruction...)
		if op == 0x03 { // loop
			out = m.spend(out, []byte{0x42, 1})
		}
	}
	return out
}

// spend takes from the fuel what cost puts on the stack, and then makes of it, and calls for more when there
// is none left.
func (m *metering) spend(out, cost []byte, then ...byte) []byte {
	out = binary.AppendUvarint(append(out, 0x23), m.fuel) // global.get
	out = append(append(out, cost...), then...)
	out = append(out, 0x7d)                               // i64.sub
	out = binary.AppendUvarint(append(out, 0x24), m.fuel) // global.set
	out = binary.AppendUvarint(append(out, 0x23), m.fuel)
	out = binary.AppendUvarint(append(out, 0x42, 0, 0x53, 0x04, 0x40, 0x10), m.call) // i64.const 0, i64.lt_s, if, call
	return append(out, 0x1a, 0x0b)                                                   // drop, end
}

// reader reads a module's encoding. It panics at its end.
type reader struct{ rest []byte }

func (r *reader) byte() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) take(n int) []byte {
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// skip skips a number in LEB128, of whatever sign.
func (r *reader) skip() {
	for r.byte()&0x80 != 0 {
	}
}

// uint reads an unsigned number in LEB128.
func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		panic("a number")
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) limits() {
	most := r.byte()&1 == 1
	r.uint()
	if most {
		r.uint()
	}
}

// indices is how many indices or constants of variable length an instruction has, where that is all it has.
func indices(op byte) (n int, known bool) {
	for _, row := range []struct {
		lo, hi byte
		n      int
	}{
		{0x00, 0x01, 0}, {0x02, 0x04, 1}, // block, loop, if: a type
		{0x05, 0x05, 0}, {0x0b, 0x0b, 0}, {0x0c, 0x0d, 1}, {0x0f, 0x0f, 0}, {0x10, 0x10, 1},
		{0x11, 0x11, 2}, // call_indirect
		{0x1a, 0x1b, 0}, {0x20, 0x26, 1},
		{0x28, 0x3e, 2}, // loads and stores
		{0x3f, 0x42, 1}, {0x45, 0xc4, 0}, {0xd1, 0xd1, 0}, {0xd2, 0xd2, 1},
	} {
		if op >= row.lo && op <= row.hi {
			return row.n, true
		}
	}
	return 0, false
}

// operands skips an instruction's operands (§5.4). moves tells of memory.copy and memory.fill.
func (r *reader) operands(op byte) (moves bool) {
	if n, ok := indices(op); ok {
		for range n {
			r.skip()
		}
		return false
	}
	switch op {
	case 0x0e: // br_table
		for range r.uint() + 1 {
			r.skip()
		}
	case 0x1c: // select with types
		r.take(int(r.uint()))
	case 0x43: // f32.const
		r.take(4)
	case 0x44: // f64.const
		r.take(8)
	case 0xd0: // ref.null
		r.byte()
	case 0xfc:
		return r.extended(r.uint())
	default:
		panic(fmt.Sprintf("instruction %#x", op))
	}
	return false
}

// extended skips the operands of an instruction after the prefix 0xfc.
func (r *reader) extended(op uint64) (moves bool) {
	switch op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case 10: // memory.copy
		r.take(2)
		return true
	case 11: // memory.fill
		r.byte()
		return true
	case 9, 13, 15, 16, 17: // one index
		r.skip()
	case 8, 12, 14: // two
		r.skip()
		r.skip()
	default:
		panic(fmt.Sprintf("instruction 0xfc %d", op))
	}
	return false
}
