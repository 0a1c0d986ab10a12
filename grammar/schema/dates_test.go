package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/grammar/grammartest"
	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// readAs are formats, and the types that pydantic reads them as.
var readAs = map[string]string{
	"date-time": "datetime.datetime", "date": "datetime.date", "time": "datetime.time", "duration": "datetime.timedelta",
	"uuid": "uuid.UUID", "uuid1": "pydantic.UUID1", "uuid3": "pydantic.UUID3", "uuid4": "pydantic.UUID4", "uuid5": "pydantic.UUID5",
	"uuid6": "pydantic.UUID6", "uuid7": "pydantic.UUID7", "uuid8": "pydantic.UUID8",
	"ipv4": "ipaddress.IPv4Address", "ipv6": "ipaddress.IPv6Address",
}

// ofFormat draws strings of a format, as JSON.
func ofFormat(t *testing.T, format string, n int) []string {
	t.Helper()
	g, err := Compile(fmt.Appendf(nil, `{"type": "string", "format": %q}`, format), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	r := rand.New(rand.NewPCG(3, 4))
	for range n {
		out, ended, err := grammartest.Walk(g, grammartest.Bytes(), r, r.IntN(40), `"`)
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			all = append(all, out)
		}
	}
	if len(all) < n/2 {
		t.Fatalf("of %d texts of format %s, %d come to an end", n, format, len(all))
	}
	return all
}

func TestDatesThatAreWrittenAreReadByGo(t *testing.T) {
	for _, text := range ofFormat(t, "date-time", sweep.Of(t, 200, 5000)) {
		var at time.Time
		if err := json.Unmarshal([]byte(text), &at); err != nil || at.Year() == 0 {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
	for _, text := range ofFormat(t, "date", 200) {
		if at, err := time.Parse(`"`+time.DateOnly+`"`, text); err != nil || at.Year() == 0 {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
	for _, text := range ofFormat(t, "duration", 200) { // within what pydantic takes, even if each number counts years
		digits := strings.FieldsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		for _, d := range digits {
			if n, err := strconv.Atoi(d); err != nil || n > 999_999 {
				t.Errorf("%s: %d, %v", text, n, err)
			}
		}
	}
}

func TestATimeThatSomeProgramsCannotReadIsNotWritten(t *testing.T) {
	for format, cases := range map[string][2][]string{
		"date-time": {{"0001-01-01T00:00:00Z", "2024-02-29T23:59:59.123456789-23:59"}, {"0000-01-01T00:00:00Z", "2024-01-01t00:00:00Z", "2024-01-01T00:00:00z", "2023-02-29T00:00:00Z"}},
		"date":      {{"0001-01-01", "9999-12-31"}, {"0000-12-31"}},
		"duration":  {{"P1Y2M3DT4H5M6S", "PT36H", "P2W"}, {"P1000000000D", "P", "PT"}},
		"uuid4":     {{"f81d4fae-7dec-41d0-A765-00a0c91e6bf6"}, {"f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-41d0-c765-00a0c91e6bf6"}},
	} {
		g, err := Compile(fmt.Appendf(nil, `{"type": "string", "format": %q}`, format), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			for _, text := range cases[i] {
				if got := grammartest.Reads(t, g, quote(text)); got != want {
					t.Errorf("%s %s is accepted: %v, want %v", format, text, got, want)
				}
			}
		}
	}
}

// TestWhatIsWrittenOfAFormatIsReadByPydantic asks Python, if it has pydantic, to read what is drawn.
func TestWhatIsWrittenOfAFormatIsReadByPydantic(t *testing.T) {
	sweep.Full(t)
	python := clienttest.Python(t, "pydantic")
	drawn := map[string][]string{}
	for format, as := range readAs {
		drawn[as] = ofFormat(t, format, sweep.Of(t, 50, 1000))
	}
	input, err := json.Marshal(drawn)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import datetime, ipaddress, json, sys, uuid
import pydantic
for kind, texts in json.load(sys.stdin).items():
    adapter = pydantic.TypeAdapter(eval(kind))
    for text in texts:
        try:
            adapter.validate_json(text)
        except pydantic.ValidationError as err:
            print(kind, text, err.errors()[0]["msg"])
`)
	cmd.Stdin = strings.NewReader(string(input))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("pydantic reads otherwise: %v\n%s", err, out)
	}
}
