package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// Report holds the results of a benchmark. It marshals to the object of --json.
type Report interface {
	Print(w io.Writer) error // as a table
}

// peer is another engine or server, measured alternately with ours.
type peer interface {
	label() (name, command string)
	// measure measures once. only is the name for a result without a name; empty: all
	// must have one.
	measure(ctx context.Context, only string) (speeds, error)
}

// program is a peer that a command runs.
type program struct {
	name    string
	command string         // for the shell
	pattern *regexp.Regexp // reads its output; nil: a format that parseSpeeds knows
}

// PeerOptions name other engines to measure alternately with ours.
type PeerOptions struct {
	Compare []string // NAME=COMMAND each
	Pattern string   // finds the results in their output; empty: the formats are known
}

// peers reads the options.
func (o *PeerOptions) peers() ([]peer, error) {
	var re *regexp.Regexp
	if o.Pattern != "" {
		var err error
		if re, err = regexp.Compile(o.Pattern); err != nil {
			return nil, usage.Errorf("--compare-pattern: %w", err)
		}
		if re.SubexpIndex("value") < 0 && re.SubexpIndex("gflops") < 0 {
			return nil, usage.Errorf("--compare-pattern: %q has neither a group (?P<value>...) nor (?P<gflops>...)", o.Pattern)
		}
	}
	var programs []program
	for _, arg := range o.Compare {
		name, command, ok := strings.Cut(arg, "=")
		if !ok || name == "" || command == "" {
			return nil, usage.Errorf("--compare: %q is not of the form NAME=COMMAND", arg)
		}
		if slices.ContainsFunc(programs, func(p program) bool { return p.name == name }) {
			return nil, usage.Errorf("--compare: two peers are named %q", name)
		}
		programs = append(programs, program{name, command, re})
	}
	peers := make([]peer, len(programs))
	for i := range programs {
		peers[i] = &programs[i]
	}
	return peers, nil
}

// maxPeerOutput bounds the output that is kept, in bytes.
const maxPeerOutput = 16 << 20

func (p *program) label() (name, command string) { return p.name, p.command }

// measure runs the command and reads what it prints.
func (p *program) measure(ctx context.Context, only string) (speeds, error) {
	out, errOut := boundedBuffer{limit: maxPeerOutput}, boundedBuffer{limit: 64 << 10}
	cmd := exec.CommandContext(ctx, "sh", "-c", p.command)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%s: %w%s", p.name, err, lastLines(errOut.Bytes())))
	}
	s, err := parseSpeeds(out.Bytes(), p.pattern, only)
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", p.name, err, lastLines(out.Bytes()))
	}
	return s, nil
}

// boundedBuffer keeps the first bytes written to it and drops the rest.
type boundedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}

// lastLines returns the end of a program's output, for an error message.
func lastLines(out []byte) string {
	text := strings.TrimSpace(string(out))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ":\n" + output.Printable(strings.Join(lines[max(0, len(lines)-5):], "\n"))
}

// Spread is the median and the extremes of several measurements.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	v = slices.Sorted(slices.Values(v))
	return Spread{v[0], (v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[len(v)-1]}
}

// format omits extremes that are equal.
func (s Spread) format(digits int) string {
	if s.Min == s.Max {
		return fmt.Sprintf("%.*f", digits, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, s.Median, digits, s.Min, digits, s.Max)
}

// Comparison is one test, ours against one peer's. Ratio is of neighbouring runs, ours
// over the peer's; Best is the ratio of the best runs.
type Comparison struct {
	Test  string  `json:"test"`
	Peer  string  `json:"peer"`
	Ours  Spread  `json:"ours"`
	Peers Spread  `json:"peers"`
	Ratio Spread  `json:"ratio"`
	Best  float64 `json:"ratio_of_bests"`
}

// CompareReport is the object of `--compare --json`.
type CompareReport struct {
	Unit        string            `json:"unit,omitempty"`
	Rounds      int               `json:"rounds"`
	Commands    map[string]string `json:"commands"` // by peer
	Comparisons []Comparison      `json:"comparisons"`
	Unmatched   []string          `json:"unmatched,omitempty"` // results of peers for tests that we did not run
}

// compare measures ours and then each peer, in every round, so that machine noise
// affects all equally. Once ctx has ended, the pairs before that are the report.
func compare(ctx context.Context, unit string, rounds int, tests []string, ours func() (speeds, error), peers []peer, done func()) (Report, error) {
	r := CompareReport{Unit: unit, Rounds: rounds, Commands: map[string]string{}}
	type pair struct{ ours, theirs []float64 }
	pairs := map[[2]string]*pair{} // by peer and test
	only := ""
	if len(tests) == 1 {
		only = tests[0]
	}
	for range rounds {
		own, err := ours()
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, p := range peers {
			name, command := p.label()
			r.Commands[name] = command
			theirs, err := p.measure(ctx, only)
			if ctx.Err() != nil {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, test := range slices.Sorted(maps.Keys(theirs)) {
				speed := theirs[test]
				if _, ok := own[test]; !ok {
					if test := name + " " + test; !slices.Contains(r.Unmatched, test) {
						r.Unmatched = append(r.Unmatched, test)
					}
					continue
				}
				key := [2]string{name, test}
				if pairs[key] == nil {
					pairs[key] = &pair{}
				}
				pairs[key].ours = append(pairs[key].ours, own[test])
				pairs[key].theirs = append(pairs[key].theirs, speed)
			}
			done()
		}
	}
	for _, test := range tests {
		for _, p := range peers {
			name, _ := p.label()
			v := pairs[[2]string{name, test}]
			if v == nil {
				continue
			}
			ratios := make([]float64, len(v.ours))
			for i := range ratios {
				ratios[i] = v.ours[i] / v.theirs[i]
			}
			c := Comparison{Test: test, Peer: name, Ours: spreadOf(v.ours), Peers: spreadOf(v.theirs), Ratio: spreadOf(ratios)}
			if c.Best = c.Ours.Max / c.Peers.Max; isTime(test) {
				c.Best = c.Ours.Min / c.Peers.Min
			}
			r.Comparisons = append(r.Comparisons, c)
		}
	}
	slices.Sort(r.Unmatched)
	if ctx.Err() != nil && len(r.Comparisons) == 0 {
		return nil, ctx.Err()
	}
	if len(r.Comparisons) == 0 {
		return nil, fmt.Errorf("nothing to compare: the tests are %v, the peers measured %v", tests, r.Unmatched)
	}
	return r, ctx.Err()
}

// isTime reports whether smaller results of a test are better.
func isTime(test string) bool { return strings.HasSuffix(test, " ms") }

// Print implements Report.
func (r CompareReport) Print(w io.Writer) error {
	rows := [][]string{{"test", strings.TrimSpace("ours " + r.Unit), "peer", strings.TrimSpace("peer's " + r.Unit), "ratio (min-max)", "of bests"}}
	for _, c := range r.Comparisons {
		rows = append(rows, []string{c.Test, c.Ours.format(1), c.Peer, c.Peers.format(1), c.Ratio.format(2), fmt.Sprintf("%.2f", c.Best)})
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	for _, name := range r.Unmatched {
		fmt.Fprintf(w, "not compared: %s\n", output.Printable(name))
	}
	return nil
}
