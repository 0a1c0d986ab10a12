package sandbox

import (
	_ "embed"
	"strings"
)

// javascript is QuickJS-ng as the npm package quickjs-wasi has it.
type javascript struct{}

//go:embed wasm/quickjs.wasm.gz
var quickjs []byte

func (javascript) module() []byte { return quickjs }

// Bounds of an instance, and of QuickJS itself, which it reports as exceptions.
const (
	jsAll    = 64 << 20
	jsMemory = jsAll * 3 / 4
	jsStack  = 256 << 10
)

// before defines what programs written for Node expect. What it prints goes nowhere.
const before = `var module = {exports: {}}, exports = module.exports;
var console = {}; for (const name of ["log", "error", "warn", "info", "debug", "trace", "assert", "time", "timeEnd"]) console[name] = () => {};`

// assertion defines what tests may use.
const assertion = `globalThis.assert = function assert(ok, message) { if (!ok) throw new Error(message || "assertion failed") };`

func (javascript) memory() int64 { return jsAll }

func (javascript) begin(vm *machine) error {
	for _, step := range []struct {
		name string
		args []uint64
	}{{"_initialize", nil}, {"qjs_init", nil}, {"qjs_set_memory_limit", []uint64{jsMemory}}, {"qjs_set_max_stack_size", []uint64{jsStack}}} {
		if _, err := vm.call(step.name, step.args...); err != nil {
			return err
		}
	}
	_, err := javascript{}.eval(vm, before)
	return err
}

func (j javascript) test(vm *machine, code, test string) (string, error) {
	for _, text := range []string{code, assertion} {
		if fault, err := j.eval(vm, text); err != nil || fault != "" && fault != isFalse {
			return fault, err
		}
	}
	vm.tested = true
	return j.eval(vm, test)
}

// isFalse is the fault of a script whose value is false.
const isFalse = "it is false"

// States of a promise.
const pending, rejected = 0, 2

// eval evaluates a script, with the jobs that it leaves. false as its value is a fault.
func (j javascript) eval(vm *machine, script string) (fault string, err error) {
	at, err := vm.write("wasm_malloc", script)
	if err != nil {
		return "", err
	}
	name, err := vm.write("wasm_malloc", "code")
	if err != nil {
		return "", err
	}
	// Calls that follow one that failed do nothing.
	call := func(f string, args ...uint64) (v uint64) {
		if err == nil {
			v, err = vm.call(f, args...)
		}
		return v
	}
	value := call("qjs_eval", at, uint64(len(script)), name, 0)
	if call("qjs_is_exception", value) != 0 {
		return j.thrown(vm, call("qjs_get_exception"))
	}
	for err == nil && call("qjs_is_job_pending") != 0 {
		call("qjs_execute_pending_job")
	}
	if err == nil && call("qjs_is_promise", value) != 0 {
		state := call("qjs_promise_state", value)
		result := call("qjs_promise_result", value)
		switch {
		case err != nil:
			return "", err
		case state == pending:
			return "its promise is never settled", nil
		case state == rejected:
			return j.thrown(vm, result)
		}
		value = result
	}
	if call("qjs_is_bool", value) != 0 && call("qjs_get_bool", value) == 0 {
		fault = isFalse
	}
	return fault, err
}

// thrown returns an exception as text.
func (javascript) thrown(vm *machine, exception uint64) (string, error) {
	at, err := vm.call("qjs_get_string", exception)
	if err != nil {
		return "", err
	}
	switch text := vm.read(at, mostText); {
	case strings.Contains(text, "out of memory"):
		return FaultMemory, nil
	case strings.Contains(text, "Maximum call stack") || strings.Contains(text, "stack overflow"):
		return FaultRecursion, nil
	case text == "":
		return "an exception", nil
	default:
		return text, nil
	}
}
