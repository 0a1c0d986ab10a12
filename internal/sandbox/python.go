package sandbox

import (
	_ "embed"
	"errors"
	"strings"
)

// python is CPython, built for a host without files (wasm/python).
type python struct{}

//go:embed wasm/python.wasm.gz
var cpython []byte

func (python) module() []byte { return cpython }

// pyAll bounds an instance. 11 MiB of it are the interpreter's own.
const pyAll = 48 << 20

func (python) memory() int64 { return pyAll }

func (python) begin(vm *machine) error {
	if _, err := vm.call("_initialize"); err != nil {
		return err
	}
	failed, err := vm.call("begin")
	if err == nil && failed != 0 {
		err = errors.New("sandbox: CPython does not begin")
	}
	return err
}

func (p python) test(vm *machine, code, test string) (string, error) {
	if fault, err := p.execute(vm, code); err != nil || fault != "" {
		return fault, err
	}
	vm.tested = true
	// A test that is an expression is to be true; others are statements.
	fault, err := p.execute(vm, "assert (\n"+test+"\n) is not False")
	if strings.HasPrefix(fault, "SyntaxError") {
		return p.execute(vm, test)
	}
	return fault, err
}

// execute executes statements. An exception is a fault.
func (python) execute(vm *machine, statements string) (fault string, err error) {
	at, err := vm.write("malloc", statements)
	if err != nil {
		return "", err
	}
	text, err := vm.call("execute", at)
	if err != nil || text == 0 {
		return "", err
	}
	fault = vm.read(text, mostText)
	switch name, _, _ := strings.Cut(fault, ":"); name {
	case "MemoryError":
		return FaultMemory, nil
	case "RecursionError":
		return FaultRecursion, nil
	}
	return fault, nil
}
