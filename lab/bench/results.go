package bench

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// speeds maps the name of a test (pp512, tg64, par8) to what was measured.
type speeds map[string]float64

var errNoSpeeds = errors.New("no results in its output: neither JSON, JSON lines, CSV or a table of llama-bench or llama-batched-bench, nor matches of --compare-pattern")

// parseSpeeds reads another engine's results: with a pattern, or if that is nil in a
// known format. only names a result that the pattern finds without a name.
func parseSpeeds(out []byte, pattern *regexp.Regexp, only string) (speeds, error) {
	s := speeds{}
	if pattern != nil {
		if err := s.match(out, pattern, only); err != nil {
			return nil, err
		}
	} else {
		s.objects(out)
		s.columns(out)
		s.tables(out)
	}
	for _, test := range slices.Sorted(maps.Keys(s)) {
		v := s[test]
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("its result of %q is %v", test, v)
		}
	}
	if len(s) == 0 {
		return nil, errNoSpeeds
	}
	return s, nil
}

// match reads with a pattern. Its groups are value, or gflops (twice the
// multiply-accumulates), and test, or the sizes m, k and n of a product.
func (s speeds) match(out []byte, pattern *regexp.Regexp, only string) error {
	for _, m := range pattern.FindAllSubmatch(out, -1) {
		group := func(name string) string {
			if i := pattern.SubexpIndex(name); i >= 0 {
				return string(m[i])
			}
			return ""
		}
		scale, text := 1.0, group("value")
		if text == "" {
			scale, text = 0.5, group("gflops")
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("--compare-pattern found %q for a value", text)
		}
		name := cmp.Or(group("test"), only)
		if k := group("k"); k != "" {
			name = productName(group("m"), k, group("n"))
		}
		if name == "" {
			return errors.New("--compare-pattern needs a group (?P<test>...) where there is more than one test")
		}
		s[name] = v * scale
	}
	return nil
}

// productName returns the test of a product of an MxK matrix with N tokens.
func productName(m, k, n string) string { return m + "x" + k + "/" + n }

// peerResult holds the fields of llama-bench and llama-batched-bench that say
// what was measured.
type peerResult struct {
	Prompt  int      `json:"n_prompt"`
	Decode  int      `json:"n_gen"`
	Depth   int      `json:"n_depth"`
	Speed   *float64 `json:"avg_ts"`
	PP      int      `json:"pp"`
	TG      int      `json:"tg"`
	PL      int      `json:"pl"`
	SpeedPP *float64 `json:"speed_pp"`
	SpeedTG *float64 `json:"speed_tg"`
}

// add records a result and reports whether there was one. Decoding after a prompt of
// more than one token is a test of its own, named like llama-bench's depths.
func (s speeds) add(r peerResult) bool {
	before := len(s)
	depth := ""
	if r.PP > 1 {
		depth = fmt.Sprintf(" @ d%d", r.PP)
	}
	switch {
	case r.Speed != nil:
		if name := r.name(); name != "" {
			s[name] = *r.Speed
		}
	case r.SpeedTG != nil && r.PL > 1 && r.TG > 0:
		s[fmt.Sprintf("par%d", r.PL)+depth] = *r.SpeedTG
	case r.SpeedTG != nil && r.PL == 1:
		if r.TG > 0 {
			s[fmt.Sprintf("tg%d", r.TG)+depth] = *r.SpeedTG
		}
		if r.SpeedPP != nil && r.PP > 1 {
			s[fmt.Sprintf("pp%d", r.PP)] = *r.SpeedPP
		}
	}
	return len(s) > before
}

// name returns the test's name as llama-bench writes it.
func (r *peerResult) name() string {
	var parts []string
	if r.Prompt > 0 {
		parts = append(parts, fmt.Sprintf("pp%d", r.Prompt))
	}
	if r.Decode > 0 {
		parts = append(parts, fmt.Sprintf("tg%d", r.Decode))
	}
	name := strings.Join(parts, "+")
	if r.Depth > 0 && name != "" {
		name += fmt.Sprintf(" @ d%d", r.Depth)
	}
	return name
}

// objects reads llama-bench -o json and jsonl and llama-batched-bench --output-format
// jsonl, and skips all other output.
func (s speeds) objects(out []byte) {
	for rest := out; ; {
		i := bytes.IndexByte(rest, '{')
		if i < 0 {
			return
		}
		rest = rest[i:]
		var r peerResult
		d := json.NewDecoder(bytes.NewReader(rest))
		if d.Decode(&r) == nil && s.add(r) {
			rest = rest[d.InputOffset():]
		} else {
			rest = rest[1:] // results may be inside
		}
	}
}

// tables reads the tables of llama-bench and llama-batched-bench; ik_llama.cpp's
// batched bench has no other format.
func (s speeds) tables(out []byte) {
	var names []string
	for line := range bytes.Lines(out) {
		row := strings.Split(strings.TrimSpace(string(line)), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if slices.Contains(row, "t/s") || slices.Contains(row, "S_TG t/s") {
			names = row
			continue
		}
		if len(row) != len(names) {
			continue
		}
		cells := map[string]string{}
		for i, name := range names {
			cells[name] = row[i]
		}
		speed := func(name string) *float64 {
			mean, _, _ := strings.Cut(cells[name], " ") // 71.25 ± 0.30
			if v, err := strconv.ParseFloat(mean, 64); err == nil {
				return &v
			}
			return nil
		}
		number := func(name string) int { n, _ := strconv.Atoi(cells[name]); return n } // absent: 0
		if v := speed("t/s"); v != nil && cells["test"] != "" {
			s[cells["test"]] = *v
		}
		s.add(peerResult{PP: number("PP"), TG: number("TG"), PL: number("B"), SpeedPP: speed("S_PP t/s"), SpeedTG: speed("S_TG t/s")})
	}
}

// columns reads llama-bench -o csv.
func (s speeds) columns(out []byte) {
	head := bytes.Index(out, []byte("build_commit,"))
	if head < 0 {
		return
	}
	r := csv.NewReader(bytes.NewReader(out[head:]))
	names, err := r.Read()
	if err != nil {
		return
	}
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			continue // a line of something else
		}
		row := map[string]string{}
		for i, cell := range cells {
			row[names[i]] = cell
		}
		speed, err := strconv.ParseFloat(row["avg_ts"], 64)
		if err != nil {
			continue
		}
		number := func(name string) int { n, _ := strconv.Atoi(row[name]); return n } // absent: 0
		s.add(peerResult{Prompt: number("n_prompt"), Decode: number("n_gen"), Depth: number("n_depth"), Speed: &speed})
	}
}
