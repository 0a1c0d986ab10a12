package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTestsOfTheEngineAreReadAsLlamaBenchWritesThem(t *testing.T) {
	for name, want := range map[string]engineTest{
		"pp512":         {name: "pp512", prompt: 512, width: 1},
		"tg64":          {name: "tg64", prompt: 1, decode: 64, width: 1},
		"tg64@d4096":    {name: "tg64 @ d4096", prompt: 4096, decode: 64, width: 1, deep: true},
		"tg64 @ d4096":  {name: "tg64 @ d4096", prompt: 4096, decode: 64, width: 1, deep: true},
		"par8@d100":     {name: "par8 @ d100", prompt: 100, decode: 16, width: 8, deep: true},
		"st8":           {name: "st8", prompt: 1, decode: 16, width: 8, structured: true},
		"cp32":          {name: "cp32", prompt: 1, decode: 32, width: 1, guess: true, repeat: true},
		"dr32 @ d20000": {name: "dr32 @ d20000", prompt: 20000, decode: 32, width: 1, deep: true, guess: true, dictate: true},
	} {
		if got, err := parseEngineTest(name, 16); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "tg", "tg0", "xx5", "tg5@", "tg5@d", "tg5@d0", "tg5@d-3", "tg5@d9999999", "pp5@d5", "64tg"} {
		if got, err := parseEngineTest(name, 16); err == nil {
			t.Errorf("%q is read as %+v, want an error", name, got)
		}
	}
}

func TestAnInterruptedBenchmarkOfTheEngineHasTheRunsSoFar(t *testing.T) {
	for runs, rows := range map[int]int{1: 0, 2: 1, 3: 1, 5: 2} { // the first of a test does not count
		ctx, cancel := context.WithCancel(t.Context())
		o := DefaultEngineOptions()
		n := 0
		o.Model, o.Tests, o.Reps, o.Threads, o.ran = "lutra-tiny-s", []string{"tg2", "pp4", "tg3"}, 2, 1, func() {
			if n++; n == runs {
				cancel()
			}
		}
		r, err := Engine(ctx, o, io.Discard)
		if got, _ := r.(EngineReport); !errors.Is(err, context.Canceled) || len(got) != rows || (r == nil) != (rows == 0) {
			t.Errorf("after %d runs: %+v, %v, want %d rows", runs, r, err, rows)
		}
		if rows > 0 {
			var out bytes.Buffer
			if err := r.Print(&out); err != nil || strings.Count(out.String(), "\n") != 1+rows {
				t.Errorf("its table is %s, %v", &out, err)
			}
		}
	}
}
