package sandbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/parallel"
)

// interpreter is a language's, compiled when it is first wanted and kept as long as the process.
type interpreter struct {
	language language
	once     sync.Once     // begins to compile
	compiled chan struct{} // closed when what follows is there
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	ready    []byte // the memory of an instance that has begun: others are copies of it
	err      error
}

// language knows how to run programs and tests in its interpreter.
type language interface {
	// module returns the interpreter, compressed by gzip.
	module() []byte
	// memory bounds an instance, in bytes.
	memory() int64
	// begin makes an instance ready.
	begin(vm *machine) error
	// test runs code and then a test. What goes wrong with either is a fault; an error is the
	// instance's end.
	test(vm *machine, code, test string) (fault string, err error)
}

// interpreters has one for each of Languages.
var interpreters = []*interpreter{{language: javascript{}}, {language: python{}}}

// How a program ends that is not let go on.
var (
	errForbidden = errors.New("sandbox: it has called what it has no business with")
	errSteps     = errors.New("sandbox: it has used up its steps")
)

// wait waits until the interpreter is compiled, which begins with the first who waits and takes
// seconds. Nobody waits for it within a place of cpulimit.
func (in *interpreter) wait(ctx context.Context) error {
	in.once.Do(func() {
		in.compiled = make(chan struct{})
		go in.load()
	})
	select {
	case <-in.compiled:
		return in.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// load compiles the interpreter.
func (in *interpreter) load() {
	defer close(in.compiled)
	in.err = parallel.Try(in.compile)
}

func (in *interpreter) compile() error {
	z, err := gzip.NewReader(bytes.NewReader(in.language.module()))
	if err != nil {
		return err
	}
	code, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	ctx := context.Background() // for all who wait
	in.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(in.language.memory()>>16)))
	if in.module, err = in.runtime.CompileModule(ctx, code); err != nil {
		return err
	}
	if err := in.link(ctx); err != nil {
		return err
	}
	vm, err := in.instance(ctx, newPace())
	if err != nil {
		return err
	}
	defer vm.close()
	if err := in.language.begin(vm); err != nil {
		return err
	}
	memory, _ := vm.module.Memory().Read(0, vm.module.Memory().Size())
	in.ready = bytes.Clone(memory)
	return nil
}

// link defines all that the module imports.
func (in *interpreter) link(ctx context.Context) error {
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range in.module.ImportedFunctions() {
		module, name, _ := f.Import()
		if hosts[module] == nil {
			hosts[module] = in.runtime.NewHostModuleBuilder(module)
		}
		hosts[module].NewFunctionBuilder().WithGoModuleFunction(charged(host(name)), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, h := range hosts {
		if _, err := h.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Numbers of WASI's errors.
const (
	errnoBadFile = 8
	errnoNoCall  = 52
)

// host returns the function that a module imports under a name.
func host(name string) func(ctx context.Context, m api.Module, stack []uint64) {
	switch name {
	case "fd_write": // is dropped
		return func(_ context.Context, m api.Module, stack []uint64) {
			list, n, sum := uint32(stack[1]), uint32(stack[2]), uint32(0)
			for i := range n {
				size, ok := m.Memory().ReadUint32Le(list + 8*i + 4)
				if !ok {
					break
				}
				sum += size
			}
			m.Memory().WriteUint32Le(uint32(stack[3]), sum)
			stack[0] = 0
		}
	case "fd_read": // is at its end
		return func(_ context.Context, m api.Module, stack []uint64) {
			m.Memory().WriteUint32Le(uint32(stack[3]), 0)
			stack[0] = 0
		}
	case "fd_fdstat_get", "fd_prestat_get": // nothing is open
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = errnoBadFile }
	case "environ_sizes_get", "args_sizes_get": // there are none
		return func(_ context.Context, m api.Module, stack []uint64) {
			m.Memory().WriteUint32Le(uint32(stack[0]), 0)
			m.Memory().WriteUint32Le(uint32(stack[1]), 0)
			stack[0] = 0
		}
	case "poll_oneoff": // a sleep, which is over at once
		return func(ctx context.Context, m api.Module, stack []uint64) {
			machineOf(ctx).tick()
			const size = 32 // of an event
			if events, ok := m.Memory().Read(uint32(stack[1]), size*min(uint32(stack[2]), 1)); ok {
				clear(events)
			}
			m.Memory().WriteUint32Le(uint32(stack[3]), min(uint32(stack[2]), 1))
			stack[0] = 0
		}
	case "clock_time_get":
		return func(ctx context.Context, m api.Module, stack []uint64) {
			m.Memory().WriteUint64Le(uint32(stack[2]), machineOf(ctx).tick()*1e6)
			stack[0] = 0
		}
	case "random_get":
		return func(_ context.Context, m api.Module, stack []uint64) {
			if room, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1])); ok {
				clear(room)
			}
			stack[0] = 0
		}
	case "host_interrupt", "refuel": // the calls that lab/tools/wasmfuel was told of
		return func(ctx context.Context, _ api.Module, stack []uint64) {
			machineOf(ctx).refuel()
			stack[0] = 0
		}
	case "host_get_timezone_offset":
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 0 }
	case "host_promise_rejection":
		return func(context.Context, api.Module, []uint64) {}
	}
	if name == "proc_exit" {
		return func(context.Context, api.Module, []uint64) { panic(errForbidden) }
	}
	return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = errnoNoCall }
}

// machine is an instance of an interpreter.
type machine struct {
	ctx    context.Context
	module api.Module
	fuel   api.MutableGlobal // in which the module counts down (lab/tools/wasmfuel); nil: it is not ready
	left   int64             // steps that it has not got yet
	clock  uint64            // milliseconds, as many as it has asked for the time
	tested bool              // its code has run, and the test begins
	*pace
}

// pace says when others go first: by the time that has passed, since steps take more or less of it.
type pace struct {
	now   func() time.Time
	pause func(context.Context) error
	since time.Time // the last pause
}

func newPace() *pace { return &pace{now: time.Now, pause: cpulimit.Pause, since: time.Now()} }

// mostTime is the time that a module works between pauses.
const mostTime = 5 * time.Millisecond

// rest pauses if the module has worked for long. It returns the end of ctx.
func (p *pace) rest(ctx context.Context) error {
	if p.now().Sub(p.since) < mostTime {
		return context.Cause(ctx)
	}
	err := p.pause(ctx)
	p.since = p.now()
	return err
}

type machineKey struct{}

// machineOf returns the instance that calls.
func machineOf(ctx context.Context) *machine { return ctx.Value(machineKey{}).(*machine) }

// open makes an instance of an interpreter that is compiled, and ready for code. No call is under way in
// the one that it copies, so that its stack pointer, the only other state that a module has, is a new one's.
func (in *interpreter) open(ctx context.Context, p *pace) (*machine, error) {
	if err := p.rest(ctx); err != nil {
		return nil, err
	}
	vm, err := in.instance(ctx, p)
	if err != nil {
		return nil, err
	}
	memory := vm.module.Memory()
	if missing := len(in.ready) - int(memory.Size()); missing > 0 {
		memory.Grow(uint32(missing >> 16))
	}
	if !memory.Write(0, in.ready) {
		vm.close()
		return nil, errors.New("sandbox: no memory for an instance")
	}
	return vm, nil
}

// instance makes an instance that is yet to begin.
func (in *interpreter) instance(ctx context.Context, p *pace) (*machine, error) {
	vm := &machine{pace: p}
	vm.ctx = context.WithValue(ctx, machineKey{}, vm)
	m, err := in.runtime.InstantiateModule(vm.ctx, in.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	vm.module = m
	vm.fuel = m.ExportedGlobal("lutra_fuel").(api.MutableGlobal)
	vm.giveSteps(math.MaxInt64)
	return vm, nil
}

func (vm *machine) close() { _ = vm.module.Close(context.Background()) }

// call calls an exported function. One that the module lacks is a panic: modules are part of the program.
func (vm *machine) call(name string, args ...uint64) (uint64, error) {
	f := vm.module.ExportedFunction(name)
	if f == nil {
		panic(fmt.Sprintf("sandbox: the module has no function %q", name))
	}
	results, err := f.Call(vm.ctx, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

// giveSteps gives an instance that is ready its steps, a slice at a time.
func (vm *machine) giveSteps(steps int64) {
	vm.left = steps
	vm.fuel.Set(0)
}

// slice is after how many steps others may go first, and the end of the context is seen: well below
// mostTime.
const slice = 1 << 14

// refuel gives a module that has used up its fuel the next slice. It panics when there is none.
func (vm *machine) refuel() {
	if int64(vm.fuel.Get()) >= 0 { // it is the program that calls
		return
	}
	if err := vm.rest(vm.ctx); err != nil {
		panic(err)
	}
	if vm.left <= 0 {
		panic(errSteps)
	}
	n := min(vm.left, slice)
	vm.left -= n
	vm.fuel.Set(vm.fuel.Get() + uint64(n))
}

// tick moves the clock, so that who waits for it comes to an end.
func (vm *machine) tick() uint64 {
	vm.clock++
	return vm.clock
}

// callCost is the cost of a call of the host in steps, about as much as the time that it takes.
const callCost = 64

// charged returns f at that cost.
func charged(f api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		if fuel := machineOf(ctx).fuel; fuel != nil {
			fuel.Set(fuel.Get() - callCost)
		}
		f(ctx, m, stack)
	}
}

// write puts a text into the instance's memory, with a zero behind it.
func (vm *machine) write(malloc, text string) (at uint64, err error) {
	at, err = vm.call(malloc, uint64(len(text)+1))
	if err == nil && (at == 0 || !vm.module.Memory().Write(uint32(at), append([]byte(text), 0))) {
		err = errors.New("sandbox: no memory for a text")
	}
	return at, err
}

// read returns a text of n bytes in the instance's memory, or up to a zero, as far as it is not too long.
func (vm *machine) read(at uint64, n uint32) string {
	memory := vm.module.Memory()
	n = min(n, mostText, memory.Size()-min(uint32(at), memory.Size()))
	text, _ := memory.Read(uint32(at), n)
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return string(text)
}

// mostText bounds what is read of an exception, in bytes.
const mostText = 64 << 10
