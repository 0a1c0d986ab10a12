package main

import (
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
	left, err := read(strings.NewReader(stream), &out)
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
}

func TestWhatIsNoEventIsAnError(t *testing.T) {
	for _, text := range []string{"ok x\n", `{"Action":"start"}`} {
		if _, err := read(strings.NewReader(text), &strings.Builder{}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
