package cli

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// speeds maps the name of a test (pp512, tg64, par8) to what was measured.
type speeds map[string]float64

var errNoSpeeds = errors.New("no results in its output: neither llama-bench's JSON, JSON lines or CSV, nor llama-batched-bench's JSON lines, nor matches of --compare-pattern")

// parseSpeeds reads another engine's measurements: with pattern, whose groups
// are value and perhaps test; without, in a format it knows.
func parseSpeeds(out []byte, pattern *regexp.Regexp, only string) (speeds, error) {
	s := speeds{}
	if pattern != nil {
		if err := s.match(out, pattern, only); err != nil {
			return nil, err
		}
	} else {
		s.array(out)
		for line := range bytes.Lines(out) {
			s.object(line)
		}
		s.columns(out)
	}
	for test, v := range s {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("its result of %q is %v", test, v)
		}
	}
	if len(s) == 0 {
		return nil, errNoSpeeds
	}
	return s, nil
}

// match reads with a pattern of these groups: value, or gflops, which are half
// as many multiply-accumulates; test, or a product's sizes m, k and n.
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

// productName is the test of a product of an MxK matrix with N tokens.
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

func (s speeds) add(r peerResult) {
	switch {
	case r.Speed != nil:
		if name := r.name(); name != "" {
			s[name] = *r.Speed
		}
	case r.SpeedTG != nil && r.PL > 1 && r.TG > 0:
		s[fmt.Sprintf("par%d", r.PL)] = *r.SpeedTG
	case r.SpeedTG != nil && r.PL == 1:
		if r.TG > 0 {
			s[fmt.Sprintf("tg%d", r.TG)] = *r.SpeedTG
		}
		if r.SpeedPP != nil && r.PP > 1 {
			s[fmt.Sprintf("pp%d", r.PP)] = *r.SpeedPP
		}
	}
}

// name is llama-bench's own way to write a test.
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

// array reads llama-bench -o json, which other programs' lines may precede.
func (s speeds) array(out []byte) {
	for rest := out; ; rest = rest[1:] {
		i := bytes.IndexByte(rest, '[')
		if i < 0 {
			return
		}
		rest = rest[i:]
		var results []peerResult
		if json.NewDecoder(bytes.NewReader(rest)).Decode(&results) == nil && len(results) > 0 {
			for _, r := range results {
				s.add(r)
			}
			return
		}
	}
}

// object reads a line of llama-bench -o jsonl or llama-batched-bench --output-format jsonl.
func (s speeds) object(line []byte) {
	var r peerResult
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) && json.Unmarshal(line, &r) == nil {
		s.add(r)
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
