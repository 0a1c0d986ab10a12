package sandbox

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/table"
)

// The functions by which C's setjmp and longjmp work in a module that Emscripten has made: whoever may be
// jumped back to has the host call what may jump.
const (
	invokePrefix = "invoke_" // a function of the table
	throwName    = "_emscripten_throw_longjmp"
)

// signature is that of a function of the table.
type signature struct{ params, results []api.ValueType }

// jumps are what an instance needs for invoking and throwing. Functions are kept for the next time, with
// the stacks that they have: Python invokes one at each call.
type jumps struct {
	stack, restore, threw api.Function
	free                  map[invoked][]api.Function
}

// invoked is a place of the table with the signature that its function is called with.
type invoked struct {
	at uint32
	*signature
}

func newJumps(m api.Module) jumps {
	return jumps{
		stack: m.ExportedFunction("emscripten_stack_get_current"), restore: m.ExportedFunction("_emscripten_stack_restore"),
		threw: m.ExportedFunction("setThrew"), free: map[invoked][]api.Function{},
	}
}

var errThrow = errors.New("sandbox: a longjmp")

// throw goes back to the last invoke.
func throw(context.Context, api.Module, []uint64) { panic(errThrow) }

// invoke calls a function of the table. Where that throws, the module's stack is as before the call, and
// the module is told so.
func invoke(of *signature) func(ctx context.Context, m api.Module, stack []uint64) {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		j := &machineOf(ctx).jumps
		key := invoked{uint32(stack[0]), of}
		copy(stack, stack[1:])
		var f api.Function
		if free := j.free[key]; len(free) > 0 { // others are being called
			f, j.free[key] = free[len(free)-1], free[:len(free)-1]
		} else {
			f = table.LookupFunction(m, 0, key.at, of.params, of.results)
		}
		before := []uint64{0}
		must(ctx, j.stack, before)
		err := f.CallWithStack(ctx, stack)
		j.free[key] = append(j.free[key], f)
		if err == nil {
			return
		}
		if !errors.Is(err, errThrow) {
			panic(err)
		}
		must(ctx, j.restore, before)
		must(ctx, j.threw, []uint64{1, 0})
	}
}

// must calls a function of the module's own, which cannot fail but as the program ends.
func must(ctx context.Context, f api.Function, stack []uint64) {
	if f == nil {
		panic("sandbox: the module has no functions to throw with")
	}
	if err := f.CallWithStack(ctx, stack); err != nil {
		panic(err)
	}
}
