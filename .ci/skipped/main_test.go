package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const stream = `{"Action":"start","Package":"x"}
{"Action":"run","Package":"x","Test":"TestA"}
{"Action":"output","Package":"x","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x","Test":"TestA","Output":"    a_test.go:3: quiet\n"}
{"Action":"output","Package":"x","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"output","Package":"x","Test":"TestA/y","Output":"    a_test.go:3: walks a part: LUTRA_SWEEPS is not all\n"}
{"Action":"pass","Package":"x","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"x","Test":"TestB","Output":"    a_test.go:4: no sh\n"}
{"Action":"output","Package":"x","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"x","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"x","Test":"TestC/x","Output":"    a_test.go:5: no sh\n"}
{"Action":"skip","Package":"x","Test":"TestC/x","Elapsed":0}
{"Action":"skip","Package":"x","Test":"TestD","Elapsed":0}
{"Action":"output","Package":"x","Test":"TestE","Output":"    a_test.go:7: bad\n"}
{"Action":"output","Package":"x","Test":"TestE","Output":"--- FAIL: TestE (0.00s)\n"}
{"Action":"fail","Package":"x","Test":"TestE","Elapsed":0}
{"Action":"output","Package":"x","Test":"TestF","Output":"panic: boo\n"}
{"Action":"output","Package":"x","Output":"FAIL\tx\t0.020s\n"}
{"Action":"fail","Package":"x","Elapsed":0.02}
{"Action":"build-output","ImportPath":"y","Output":"y.go:3:28: undefined: z\n"}
{"Action":"output","Package":"z","Output":"PASS\n"}
{"Action":"output","Package":"z","Output":"ok  \tz\t0.007s\n"}
{"Action":"pass","Package":"z","Elapsed":0.01}
`

func TestReasonsToSkipAndFailuresAreSaidLast(t *testing.T) {
	var out strings.Builder
	left, ran, err := read(strings.NewReader(stream), &out, true)
	if err != nil {
		t.Fatal(err)
	}
	want := "ok  \tz\t0.007s\n" +
		"skipped: no sh: TestB and 1 more\nskipped: without a reason: TestD\n" +
		"    a_test.go:7: bad\n--- FAIL: TestE (0.00s)\nFAIL\tx\t0.020s\npanic: boo\ny.go:3:28: undefined: z\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
	if want := []string{"part x TestA\n", "skip x TestB\n", "skip x TestC\n", "skip x TestD\n"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
	if want := []string{"ran x TestA\n", "skip x TestB\n", "skip x TestD\n", "ran x TestE\n"}; !slices.Equal(ran, want) {
		t.Errorf("%q ran or were skipped, want %q", ran, want)
	}
}

func TestAFullRunLeavesNothingToAFullerOne(t *testing.T) {
	text := strings.ReplaceAll(stream, "no sh", leftToFull)
	for _, full := range []bool{false, true} {
		if _, _, err := read(strings.NewReader(text), &strings.Builder{}, full); (err != nil) != full {
			t.Errorf("full: %t, error: %v", full, err)
		}
	}
}

func TestWhatRanIsAddedToTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ran")
	for _, line := range []string{"ran x TestA\n", "skip x TestB\n"} {
		if err := add(name, line); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "ran x TestA\nskip x TestB\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestWhatIsNoEventIsAnError(t *testing.T) {
	for _, text := range []string{"ok x\n", `{"Action":"start"}`} {
		if _, _, err := read(strings.NewReader(text), &strings.Builder{}, false); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
