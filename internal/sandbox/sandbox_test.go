package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
)

// testSteps is little, so that what never ends ends soon.
const testSteps = 1_000_000

func run(t *testing.T, language, code string, tests ...string) Result {
	t.Helper()
	if err := Load(t.Context(), language); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), &Program{language, code, tests}, testSteps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTestsPassUnlessTheyThrowOrAreFalse(t *testing.T) {
	for _, c := range []struct {
		language, code string
		tests          []string
		want           Result
	}{
		{"javascript", "function f(x) { return x * 2 }\nconsole.log(f(1)); module.exports = {f}",
			[]string{"f(2) === 4", "assert(f(3) === 6)", "f(3) === 7", "assert(f(3) === 7, 'seven')", "Promise.resolve(false)", "(async () => { assert(await f(2) === 4) })()"},
			Result{3, "test 3: it is false"}},
		{"javascript", "const f = x => x", []string{"g(1)", "f(1) === 1"}, Result{1, "test 1: ReferenceError: g is not defined"}},
		{"javascript", "function f(", []string{"true"}, Result{0, "the code: SyntaxError: missing formal parameter"}},
		{"javascript", "", []string{"new Promise(() => {})"}, Result{0, "test 1: its promise is never settled"}},
		{"python", "import math\nclass A:\n  def __init__(self, x: int): self.x = x\ndef f(x: int) -> int:\n  return A(x).x * 2\nprint(f'{f(1)}')",
			[]string{"f(2) == 4", "assert f(3) == 6", "f(3) == 7", "assert f(3) == 7, 'seven'", "x = f(2)\nassert x == 4", "g(2)"},
			Result{3, "test 3: AssertionError"}},
		{"python", "def f(x) return x", []string{"True"}, Result{0, "the code: SyntaxError: expected ':' (<string>, line 1)"}},
		{"python", "import time\ntime.sleep(1)", []string{"True"}, Result{1, ""}},
	} {
		if r := run(t, c.language, c.code, c.tests...); r != c.want {
			t.Errorf("%s %q: %+v, want %+v", c.language, c.code, r, c.want)
		}
	}
}

func TestAProgramThatCannotGoOnForOthersWorkIsNotFaulty(t *testing.T) {
	for _, language := range Languages() {
		if err := Load(t.Context(), language); err != nil {
			t.Fatal(err)
		}
		in, err := interpreterOf(language)
		if err != nil {
			t.Fatal(err)
		}
		var clock time.Time
		slow := &pace{now: func() time.Time { clock = clock.Add(mostTime); return clock }}
		pauses := 0
		slow.pause = func(context.Context) error {
			if pauses++; pauses < 3 {
				return nil
			}
			return cpulimit.ErrBusy
		}
		loop := map[string]string{"javascript": "for (;;);", "python": "while True: pass"}[language]
		if r, err := in.run(t.Context(), slow, loop, "1", testSteps); !errors.Is(err, cpulimit.ErrBusy) {
			t.Errorf("%s: %+v, %v", language, r, err)
		}
	}
}

func TestHostileCodeIsBoundedAndNamed(t *testing.T) {
	for _, c := range []struct{ language, code, test, want string }{
		{"javascript", "for (;;);", "true", "the code: " + FaultSteps},
		{"javascript", "", "for (;;);", "test 1: " + FaultSteps},
		{"javascript", "/(a+)+$/.test('a'.repeat(40) + 'b')", "true", "the code: " + FaultSteps},
		{"javascript", "for (;;) console.log('x'.repeat(1000))", "true", "the code: " + FaultSteps},
		{"javascript", "function f() { return f() + 1 }", "f()", "test 1: " + FaultRecursion},
		{"javascript", "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))", "true", "the code: " + FaultMemory},
		{"javascript", "(function f() { Promise.resolve().then(f) })()", "true", "the code: " + FaultSteps},
		{"javascript", "require('fs')", "true", "the code: ReferenceError: require is not defined"},
		{"javascript", "import('fs')", "true", "the code: ReferenceError: could not load module 'fs'"},
		{"javascript", "throw 'x'.repeat(1e5)", "true", "the code: " + strings.Repeat("x", mostFault) + "…"},
		{"python", "while True: pass", "True", "the code: " + FaultSteps},
		{"python", "x = 10 ** 10 ** 6", "True", "the code: " + FaultSteps},
		{"python", "while True: print('x' * 1000)", "True", "the code: " + FaultSteps},
		{"python", "def f(): return f() + 1", "f()", "test 1: " + FaultRecursion},
		{"python", "bytearray(1 << 28)", "True", "the code: " + FaultMemory},
		{"python", "import os\nos._exit(0)", "True", "the code: " + FaultForbidden},
		{"python", "import os\nos.abort()", "True", "the code: " + FaultCrash},
		{"python", "import threading\nthreading.Thread(target=print).start()", "True", "the code: RuntimeError: can't start new thread"},
		{"python", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f() + 1", "f()", "test 1: " + FaultSteps},
		{"python", "import re\nre.match('(a+)+$', 'a' * 40 + 'b')", "True", "the code: " + FaultSteps},
		{"python", "open('/etc/passwd')", "True", "the code: PermissionError: [Errno 76] Capabilities insufficient: '/etc/passwd'"},
		{"python", "input()", "True", "the code: EOFError: EOF when reading a line"},
		{"python", "class E(Exception):\n  def __str__(self): raise self\nraise E", "True", "the code: E"},
		{"python", "import sys\nsys.exit(0)", "True", "the code: SystemExit: 0"},
		{"python", "import socket", "True", "the code: ModuleNotFoundError: No module named 'socket'"},
	} {
		if r := run(t, c.language, c.code, c.test); r.Passed != 0 || r.Fault != c.want {
			t.Errorf("%s %q: %+v, want the fault %q", c.language, c.code, r, c.want)
		}
	}
}

func TestProgramsFindPythonsLibraryAndItsDepth(t *testing.T) {
	for _, code := range []string{
		"import argparse, base64, bisect, calendar, concurrent.futures, copy, csv, dataclasses, decimal, difflib, enum, fractions, graphlib, hashlib, hmac, inspect, ipaddress",
		"import logging, pathlib, pickle, platform, pprint, queue, secrets, shlex, shutil, statistics, string, textwrap, traceback, urllib.parse, uuid",
		"import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual('abc'[::-1], 'cba')\nunittest.main(exit=False)",
		"from functools import lru_cache\n@lru_cache(None)\ndef f(n): return n if n < 2 else f(n-1) + f(n-2)\nassert f(300) > 0",
		"a = []\nfor i in range(900): a = [a]\nrepr(a)",
	} {
		if err := Load(t.Context(), "python"); err != nil {
			t.Fatal(err)
		}
		if r, err := Run(t.Context(), &Program{"python", code, []string{"True"}}, stepsOf(true)); err != nil || r.Passed != 1 {
			t.Errorf("%q: %+v, %v", code, r, err)
		}
	}
}

func TestAProgramIsTheSameEveryTime(t *testing.T) {
	for language, code := range map[string]string{
		"javascript": "const seen = [Math.random(), Date.now(), new Date().getTimezoneOffset()].join()",
		"python":     "import random, time\nseen = str([random.random(), time.time()])",
	} {
		first := run(t, language, code, map[string]string{"javascript": "throw seen", "python": "raise ValueError(seen)"}[language])
		again := run(t, language, code, map[string]string{"javascript": "throw seen", "python": "raise ValueError(seen)"}[language])
		if first != again || first.Fault == "" {
			t.Errorf("%s: %+v, then %+v", language, first, again)
		}
	}
}

func TestAllTestsTogetherAreBounded(t *testing.T) {
	tests := make([]string, allSteps+2)
	for i := range tests {
		tests[i] = "for (;;);"
	}
	tests[len(tests)-1] = "true"
	if r := run(t, "javascript", "", tests...); r.Passed != 0 {
		t.Errorf("%+v: a test ran after all steps were used", r)
	}
}

// used returns how many steps an instance has taken for statements.
func used(t *testing.T, p *pace, statements string, steps int64) int64 {
	t.Helper()
	if err := Load(t.Context(), "python"); err != nil {
		t.Fatal(err)
	}
	vm, err := interpreters[1].open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer vm.close()
	vm.giveSteps(steps)
	if _, err := (python{}).execute(vm, statements); err != nil && !errors.Is(err, errSteps) {
		t.Fatal(err)
	}
	return steps - vm.left - int64(vm.fuel.Get())
}

func TestCallsThroughTheHostAreCharged(t *testing.T) {
	const times, enough = 1000, 1 << 40
	bare := used(t, newPace(), "for i in range(1000): pass", enough)
	for statements, cost := range map[string]int64{
		"import time\nfor i in range(1000): time.time()":   callCost,
		"import time\nfor i in range(1000): time.sleep(1)": 2 * callCost,
	} {
		if n := used(t, newPace(), statements, enough) - bare; n < times*cost {
			t.Errorf("%s: %d steps more than a loop, want at least %d for what goes through the host", statements, n, times*cost)
		}
	}
}

func TestAProgramPausesByTheTimeThatItsStepsTake(t *testing.T) {
	if err := Load(t.Context(), "python"); err != nil {
		t.Fatal(err)
	}
	const slices = 100
	for each, least := range map[time.Duration]int{0: 0, time.Microsecond: 0, mostTime / 4: slices / 5, 10 * mostTime: slices} {
		now, pauses := time.Time{}, 0
		p := &pace{now: func() time.Time { now = now.Add(each); return now }}
		p.pause = func(context.Context) error { pauses++; return nil }
		vm, err := interpreters[1].open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		vm.giveSteps(slices * slice)
		pauses = 0
		if _, err := (python{}).execute(vm, "while True: pass"); !errors.Is(err, errSteps) {
			t.Errorf("an endless loop ends with %v", err)
		}
		vm.close()
		if pauses < least || least == 0 && pauses > 0 {
			t.Errorf("where a slice takes %v, there are %d pauses in %d of them, want %d", each, pauses, slices, least)
		}
	}
}

func TestThereAreFewerStepsWhereWebAssemblyIsInterpreted(t *testing.T) {
	if compiled, interpreted := stepsOf(true), stepsOf(false); interpreted*40 > compiled {
		t.Errorf("%d steps where each takes 40 times as long as of %d", interpreted, compiled)
	}
}

func TestAContextEndsAProgram(t *testing.T) {
	if err := Load(t.Context(), "javascript"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, &Program{"javascript", "for (;;);", []string{"true"}}, 1<<50); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithCancel(t.Context())
	vm, err := interpreters[0].open(ctx, newPace())
	if err != nil {
		t.Fatal(err)
	}
	defer vm.close()
	vm.giveSteps(1 << 50)
	cancel()
	if _, err := interpreters[0].language.test(vm, "for (;;);", "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("an endless loop ended with %v, want %v", err, context.Canceled)
	}
}
