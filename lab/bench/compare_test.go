package bench

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestSpeedsAreReadFromWhatOtherEnginesPrint(t *testing.T) {
	for name, c := range map[string]struct {
		out, pattern, only string
		want               speeds
	}{
		"llama-bench's JSON": {
			out: "[notice] loading\n" + `[
  {"build_commit": "1", "n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 240.5, "samples_ts": [ 240, 241 ]},
  {"build_commit": "1", "n_prompt": 0, "n_gen": 64, "n_depth": 0, "avg_ts": 33.25},
  {"build_commit": "1", "n_prompt": 0, "n_gen": 64, "n_depth": 1024, "avg_ts": 20},
  {"build_commit": "1", "n_prompt": 8, "n_gen": 16, "avg_ts": 21}
]`,
			want: speeds{"pp512": 240.5, "tg64": 33.25, "tg64 @ d1024": 20, "pp8+tg16": 21},
		},
		"llama-bench's JSON lines": {
			out:  "x\n{\"n_prompt\": 128, \"n_gen\": 0, \"avg_ts\": 7.5}\n{\"other\": 1}\n{broken\n",
			want: speeds{"pp128": 7.5},
		},
		"llama-bench's CSV": {
			out: "build_commit,build_number,n_prompt,n_gen,n_depth,avg_ts\n" +
				`"abc","1","512","0","0","10.500000"` + "\n" + `"abc","1","0","32","0","2.250000"` + "\nthe end\n",
			want: speeds{"pp512": 10.5, "tg32": 2.25},
		},
		"llama-batched-bench's JSON lines": {
			out: "\n" + `{"n_kv_max": 4096, "pp": 1, "tg": 64, "pl": 1, "speed_pp": 20.0, "speed_tg": 30.0, "speed": 29}
{"n_kv_max": 4096, "pp": 1, "tg": 64, "pl": 32, "speed_pp": 50.0, "speed_tg": 90.0, "speed": 89}`,
			want: speeds{"tg64": 30, "par32": 90},
		},
		"sequences that follow long prompts": {
			out: `{"pp": 127, "tg": 64, "pl": 32, "speed_pp": 50.0, "speed_tg": 90.0}
{"pp": 127, "tg": 64, "pl": 1, "speed_pp": 40.0, "speed_tg": 20.0}`,
			want: speeds{"par32 @ d127": 90, "tg64 @ d127": 20, "pp127": 40},
		},
		"JSON with warnings between the results": {
			out: `[
WARNING: nothing {to} say
  {"n_prompt": 8, "n_gen": 0, "avg_ts": 6.5, "samples_ts": [ 6.5 ]},
WARNING: again
  {"n_prompt": 0, "n_gen": 2, "avg_ts": 1.5, "samples_ts": [ 1.5 ]}
]`,
			want: speeds{"pp8": 6.5, "tg2": 1.5},
		},
		"llama-bench's table": {
			out: `| model            |  size | params | backend | threads | rtr |        test |              t/s |
| ---------------- | ----: | -----: | ------- | ------: | --: | ----------: | ---------------: |
WARNING: something | else
| llama ?B IQ2_BN  | 625 M | 1.67 B | CPU     |       2 |   1 |         pp8 |     23.25 ± 0.01 |
| llama ?B IQ2_BN  | 625 M | 1.67 B | CPU     |       2 |   1 | tg2 @ d1024 |      8.75 ± 0.00 |
| llama ?B IQ2_BN  | 625 M | 1.67 B | CPU     |       2 |   1 |         tg4 |              err |

build: 0c1e570 (1)
`,
			want: speeds{"pp8": 23.25, "tg2 @ d1024": 8.75},
		},
		"llama-batched-bench's table": {
			out: `|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|     1 |     16 |    1 |     17 |    0.069 |    14.50 |    1.027 |    15.50 |    1.096 |    62.03 |
|     1 |     16 |    4 |     68 |    0.069 |    58.03 |    1.027 |    62.25 |    1.096 |    62.03 |
`,
			want: speeds{"tg16": 15.5, "par4": 62.25},
		},
		"a pattern with tests": {
			out: "run pp64: 3.5 tok/s\nrun tg8: 1e1 tok/s\n", pattern: `run (?P<test>\w+): (?P<value>\S+) tok/s`,
			want: speeds{"pp64": 3.5, "tg8": 10},
		},
		"a pattern for the only test": {
			out: "speed 3.5", pattern: `speed (?P<value>[0-9.]+)`, only: "tg8", want: speeds{"tg8": 3.5},
		},
		"a pattern of products": {
			out:     "MUL_MAT(type_a=q4_0,m=4096,n=32,k=2048): 852 runs - 99.50 GFLOPS",
			pattern: `m=(?P<m>\d+),n=(?P<n>\d+),k=(?P<k>\d+).* (?P<gflops>\S+) GFLOPS`,
			want:    speeds{"4096x2048/32": 49.75},
		},
	} {
		var re *regexp.Regexp
		if c.pattern != "" {
			re = regexp.MustCompile(c.pattern)
		}
		if got, err := parseSpeeds([]byte(c.out), re, c.only); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestOutputWithoutSpeedsIsAnError(t *testing.T) {
	value := regexp.MustCompile(`speed (?P<value>\S+)`)
	for name, c := range map[string]struct {
		out     string
		pattern *regexp.Regexp
	}{
		"nothing":           {"", nil},
		"other JSON":        {`[{"a": 1}] {"b": 2}`, nil},
		"a speed of 0":      {`[{"n_prompt": 1, "avg_ts": 0}]`, nil},
		"no match":          {"nothing", value},
		"no number":         {"speed high", value},
		"an empty table":    {"| test | t/s |\n| --- | --- |\n| | 5 |\n", nil},
		"an infinite speed": {"speed Inf", regexp.MustCompile(`(?P<test>speed) (?P<value>\S+)`)},
		"an unnamed test":   {"speed 1", value},
	} {
		if got, err := parseSpeeds([]byte(c.out), c.pattern, ""); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParseSpeedsTakesAnyOutput(f *testing.F) {
	f.Add([]byte(`[{"n_prompt": 512, "avg_ts": 2}]`))
	f.Add([]byte("build_commit,avg_ts\n\"a\",\"1\",\"2\"\n"))
	f.Add([]byte("| test | t/s |\n| pp8 | 2 ± 1 |\n| B | TG | S_TG t/s |\n| 4 | 1 | 2 |\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := parseSpeeds(out, nil, "")
		if (err == nil) != (len(s) > 0) {
			t.Errorf("%d results with error %v", len(s), err)
		}
	})
}

// scripted is a peer with prepared results.
type scripted struct {
	name  string
	turns []speeds
	log   *[]string
}

func (s *scripted) label() (name, command string) { return s.name, "run " + s.name }

func (s *scripted) measure(context.Context, string) (speeds, error) {
	*s.log = append(*s.log, s.name)
	first := s.turns[0]
	s.turns = s.turns[1:]
	return first, nil
}

func TestPeersAreMeasuredAlternatelyAndRatiosArePaired(t *testing.T) {
	var log []string
	own := scripted{"ours", []speeds{{"pp8": 10, "tg8": 4}, {"pp8": 40, "tg8": 4}, {"pp8": 20, "tg8": 4}}, &log}
	a := scripted{"a", []speeds{{"pp8": 5}, {"pp8": 40}, {"pp8": 5}}, &log}
	b := scripted{"b", []speeds{{"tg8": 2, "par4": 1}, {"tg8": 2}, {"tg8": 2}}, &log}
	report, err := compare(t.Context(), "tok/s", 3, []string{"pp8", "tg8"},
		func() (speeds, error) { return own.measure(t.Context(), "") }, []peer{&a, &b}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	r := report.(CompareReport)
	if got := strings.Join(log, " "); got != "ours a b ours a b ours a b" {
		t.Errorf("order %q", got)
	}
	want := []Comparison{
		{"pp8", "a", Spread{10, 20, 40}, Spread{5, 5, 40}, Spread{1, 2, 4}, 1},
		{"tg8", "b", Spread{4, 4, 4}, Spread{2, 2, 2}, Spread{2, 2, 2}, 2},
	}
	if !reflect.DeepEqual(r.Comparisons, want) || !reflect.DeepEqual(r.Unmatched, []string{"b par4"}) {
		t.Errorf("%+v", r)
	}
	own.turns, a.turns = []speeds{{"tg8": 4}}, []speeds{{"pp8": 5}}
	if _, err := compare(t.Context(), "tok/s", 1, []string{"tg8"}, func() (speeds, error) { return own.measure(t.Context(), "") }, []peer{&a}, func() {}); err == nil {
		t.Error("a peer without a test of ours is no error")
	}
}

func TestAnInterruptedComparisonHasThePairsSoFar(t *testing.T) {
	var log []string
	ctx, cancel := context.WithCancel(t.Context())
	own := scripted{"ours", []speeds{{"tg8": 4}, {"tg8": 6}, {"tg8": 8}}, &log}
	a := scripted{"a", []speeds{{"tg8": 2}, {"tg8": 2}, {"tg8": 2}}, &log}
	rounds := 0
	r, err := compare(ctx, "tok/s", 3, []string{"tg8"}, func() (speeds, error) {
		if rounds++; rounds == 3 {
			cancel()
		}
		return own.measure(ctx, "")
	}, []peer{&a}, func() {})
	want := []Comparison{{"tg8", "a", Spread{4, 5, 6}, Spread{2, 2, 2}, Spread{2, 2.5, 3}, 3}}
	if got, _ := r.(CompareReport); !errors.Is(err, context.Canceled) || !reflect.DeepEqual(got.Comparisons, want) {
		t.Errorf("%+v, %v, want %+v", r, err, want)
	}
	if r, err := compare(ctx, "tok/s", 3, []string{"tg8"}, func() (speeds, error) { return nil, ctx.Err() }, []peer{&a}, func() {}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before the first pair: %v, %v", r, err)
	}
}

func TestSeveralBadSpeedsAreAlwaysRefusedForTheSameOne(t *testing.T) {
	pattern := regexp.MustCompile(`(?P<test>\w+) (?P<value>\S+)`)
	for range 30 {
		if _, err := parseSpeeds([]byte("c Inf\na Inf\nb Inf\n"), pattern, ""); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Fatalf("parseSpeeds = %v, want an error about a", err)
		}
	}
}

func TestAReportOfSchemasListsTheMostFrequentReasonFirst(t *testing.T) {
	r := &SchemaReport{Reasons: map[string]int{"b": 2, "a": 2, "c": 5, "d": 1}}
	for range 30 {
		var b strings.Builder
		if err := r.Print(&b); err != nil {
			t.Fatal(err)
		}
		if want := "     5  c\n     2  a\n     2  b\n     1  d\n"; !strings.HasSuffix(b.String(), want) {
			t.Fatalf("%s\nwant it to end with\n%s", b.String(), want)
		}
	}
}
