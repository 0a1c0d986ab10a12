package sandbox

import (
	_ "embed"
	"strings"
)

// python is MicroPython as the npm package @micropython/micropython-webassembly-pyscript has it.
type python struct{}

//go:embed wasm/micropython.wasm.gz
var micropython []byte

func (python) module() []byte { return micropython }

// Bounds of an instance, and of MicroPython itself, which it reports as exceptions.
const (
	pyAll   = 32 << 20
	pyStack = 8 << 10  // words
	pyHeap  = 16 << 20 // bytes
)

func (python) memory() int64 { return pyAll }

func (python) begin(vm *machine) error {
	for _, step := range []struct {
		name string
		args []uint64
	}{{"emscripten_stack_init", nil}, {"__wasm_call_ctors", nil}, {"mp_js_init", []uint64{pyStack, pyHeap}}, {"proxy_c_init", nil}} {
		if _, err := vm.call(step.name, step.args...); err != nil {
			return err
		}
	}
	return nil
}

func (p python) test(vm *machine, code, test string) (string, error) {
	if fault, err := p.exec(vm, code); err != nil || fault != "" {
		return fault, err
	}
	vm.tested = true
	// A test that is an expression is to be true; others are statements.
	fault, err := p.exec(vm, "assert (\n"+test+"\n) is not False")
	if strings.HasPrefix(fault, "SyntaxError") {
		return p.exec(vm, test)
	}
	return fault, err
}

// exception is the kind of a value that says that there is one.
const exception = 0xffffffff

// exec executes statements. An exception is a fault.
func (python) exec(vm *machine, statements string) (fault string, err error) {
	at, err := vm.write("malloc", statements)
	if err != nil {
		return "", err
	}
	value, err := vm.call("malloc", 12)
	if err != nil {
		return "", err
	}
	if _, err := vm.call("mp_js_do_exec", at, uint64(len(statements)), value); err != nil {
		return "", err
	}
	memory := vm.module.Memory()
	if kind, _ := memory.ReadUint32Le(uint32(value)); kind != exception {
		return "", nil
	}
	size, _ := memory.ReadUint32Le(uint32(value) + 4)
	text, _ := memory.ReadUint32Le(uint32(value) + 8)
	name, details, _ := strings.Cut(vm.read(uint64(text), size), "\x04")
	switch {
	case name == "MemoryError":
		return FaultMemory, nil
	case name == "RuntimeError" && strings.Contains(details, "recursion"):
		return FaultRecursion, nil
	}
	lines := strings.Split(strings.TrimSpace(details), "\n")
	return lines[len(lines)-1], nil // behind the traceback
}
