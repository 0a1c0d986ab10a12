package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
)

// GrowthPoint is the cost of one thing at one size.
type GrowthPoint struct {
	Axis   string  `json:"axis"`   // batch, context or threads
	Series string  `json:"series"` // what was measured
	X      int     `json:"x"`      // sequences, tokens before, or threads
	TokS   float64 `json:"tok_s"`
	MS     float64 `json:"ms_per_token"`
	Remark string  `json:"remark,omitempty"`
}

// GrowthReport is the report of `bench growth`.
type GrowthReport []GrowthPoint

// GrowthOptions say what to measure. Lists are ascending.
type GrowthOptions struct {
	Source
	Batches  []int  // sequences at once
	Contexts []int  // tokens before the decoded ones
	Threads  []int  // empty: 1 to all cores; the last counts for the other axes
	Decode   int    // tokens a sequence
	Reps     int    // runs a point, of which the best counts
	SVG      string // a file for the drawing; empty: none
}

// DefaultGrowthOptions suit a small model on any machine.
func DefaultGrowthOptions() GrowthOptions {
	return GrowthOptions{Batches: []int{1, 2, 4, 8, 16, 32, 64}, Contexts: []int{128, 256, 512, 1024, 2048, 4096, 8192}, Decode: 32, Reps: 3}
}

// growthRun is a benchmark under way.
type growthRun struct {
	GrowthOptions
	errOut io.Writer // for progress
	points GrowthReport
}

// Growth measures all points. Progress goes to errOut.
func Growth(ctx context.Context, opt GrowthOptions, errOut io.Writer) (Report, error) {
	o := growthRun{GrowthOptions: opt, errOut: errOut}
	if len(o.Threads) == 0 {
		o.Threads = upTo(cpu.Cores())
	}
	for _, n := range o.Threads {
		if err := config.CheckThreads(n); err != nil {
			return nil, usage.Errorf("--%w", err)
		}
	}
	for _, list := range [][]int{o.Batches, o.Contexts, o.Threads} {
		if !slices.IsSorted(list) || len(list) > 0 && (list[0] < 1 || list[len(list)-1] > 1<<16) {
			return nil, usage.Errorf("%v are not ascending numbers from 1 to %d", list, 1<<16)
		}
	}
	if o.Decode < 2 || o.Reps < 1 {
		return nil, usage.Errorf("--decode must be 2 or more, --reps positive")
	}
	for i, n := range o.Threads {
		err := o.measure(ctx, n, i == len(o.Threads)-1)
		if err != nil && (ctx.Err() == nil || len(o.points) == 0) {
			return nil, err
		}
		if err != nil {
			break
		}
	}
	slices.SortStableFunc(o.points, func(a, b GrowthPoint) int {
		return cmp.Or(cmp.Compare(a.Axis, b.Axis), cmp.Compare(a.Series, b.Series), cmp.Compare(a.X, b.X))
	})
	remark(o.points)
	if o.SVG != "" {
		var drawing bytes.Buffer
		if err := drawGrowth(&drawing, o.points); err != nil {
			return nil, err
		}
		if err := os.WriteFile(o.SVG, drawing.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	return o.points, ctx.Err()
}

// Print implements Report.
func (points GrowthReport) Print(w io.Writer) error {
	rows := [][]string{{"axis", "series", "size", "tok/s", "ms a token", "remark"}}
	for _, p := range points {
		rows = append(rows, []string{p.Axis, p.Series, fmt.Sprint(p.X), fmt.Sprintf("%.1f", p.TokS), fmt.Sprintf("%.4g", p.MS), p.Remark})
	}
	return output.Table(w, rows)
}

// upTo returns 1, 2, 4 ... and n.
func upTo(n int) []int {
	var list []int
	for i := 1; i < n; i *= 2 {
		list = append(list, i)
	}
	return append(list, n)
}

// measure adds the points of one number of threads; with all, also the points of the
// other axes.
func (o *growthRun) measure(ctx context.Context, threads int, all bool) (err error) {
	pool, err := engines.NewPool(threads)
	if err != nil {
		return err
	}
	defer pool.Close()
	bundle, err := o.load(ctx, pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	room := bundle.Model.Config().Context - o.Decode - 1
	if room < 1 {
		return fmt.Errorf("the model's context of %d is too short to decode %d tokens", bundle.Model.Config().Context, o.Decode)
	}
	prompt := min(128, room)
	tests := []growthTest{
		{"threads", "prefill", threads, engineTest{prompt: prompt, width: 1}},
		{"threads", "decode 1", threads, engineTest{prompt: 1, decode: o.Decode, width: 1}},
		{"threads", "decode 32", threads, engineTest{prompt: 1, decode: o.Decode, width: 32}},
	}
	if all {
		for _, n := range o.Batches {
			tests = append(tests, growthTest{"batch", "decode", n, engineTest{prompt: 1, decode: o.Decode, width: n}})
		}
		for _, n := range o.Contexts {
			if n <= room {
				tests = append(tests, growthTest{"context", "decode", n, engineTest{prompt: n, decode: o.Decode, width: 1}},
					growthTest{"context", "prefill", n, engineTest{prompt: n, width: 1}})
			}
		}
	}
	meter := &output.Meter{W: o.errOut, What: fmt.Sprintf("points on %d threads", threads)}
	defer meter.End()
	done := meter.Count(0, len(tests))
	for i, t := range tests {
		p, err := o.point(ctx, bundle, pool, t, i > 0)
		if err != nil {
			return fmt.Errorf("%s %s of %d: %w", t.axis, t.series, t.x, err)
		}
		o.points = append(o.points, p)
		done()
	}
	return nil
}

// growthTest is a point to measure.
type growthTest struct {
	axis, series string
	x            int
	test         engineTest
}

func (o *growthRun) point(ctx context.Context, bundle *models.Bundle, pool *pool.Pool, t growthTest, warm bool) (GrowthPoint, error) {
	runtime.GC() // frees the last point's cache
	runs := engineRuns{bundle: bundle, pool: pool, test: t.test, reps: o.Reps, warm: warm, done: func() {}}
	times, err := runs.measure(ctx)
	if err != nil {
		return GrowthPoint{}, err
	}
	p := GrowthPoint{Axis: t.axis, Series: t.series, X: t.x, TokS: t.test.speed(times).Max}
	if t.axis == "context" && t.test.decode > 0 { // without the prompt
		best := times[0].decode
		for _, took := range times {
			best = min(best, took.decode)
		}
		p.TokS = float64(t.test.decode-1) / best.Seconds()
	}
	p.MS = 1000 / p.TokS
	return p, nil
}

// A remark needs more than the noise between the best of a few runs.
const (
	growthDrop = 0.95 // below this part of the best speed at a smaller size
	growthBend = 1.10 // above this multiple of what a line through the two points before predicts
)

// remark marks the points where costs grow badly. Points are sorted by curve and size.
func remark(points []GrowthPoint) {
	best := 0.0
	for i := range points {
		p := &points[i]
		first := i
		for first > 0 && points[first-1].Axis == p.Axis && points[first-1].Series == p.Series {
			first--
		}
		if i == first {
			best = 0
		}
		switch {
		case p.Axis != "context":
			if p.TokS < growthDrop*best {
				p.Remark = fmt.Sprintf("falls to %.2f of a smaller size's speed", p.TokS/best)
			}
			best = max(best, p.TokS)
		case i-first >= 2:
			a, b := points[i-2], points[i-1]
			line := b.MS + max(0, b.MS-a.MS)*float64(p.X-b.X)/float64(max(1, b.X-a.X))
			if p.MS > growthBend*line {
				p.Remark = fmt.Sprintf("%.2f of linear growth", p.MS/line)
			}
		}
	}
}
