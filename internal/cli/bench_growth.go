package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
)

// growthPoint is the cost of one thing at one size.
type growthPoint struct {
	Axis   string  `json:"axis"`   // batch, context or threads
	Series string  `json:"series"` // what was measured
	X      int     `json:"x"`      // sequences, tokens before, or threads
	TokS   float64 `json:"tok_s"`
	MS     float64 `json:"ms_per_token"`
	Remark string  `json:"remark,omitempty"`
}

type growthBench struct {
	benchSource
	batches, contexts, threads []int
	decode, reps               int
	asJSON                     bool
	svg                        string
	points                     []growthPoint
}

func newBenchGrowth() *cobra.Command {
	o := growthBench{}
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure how costs grow with the batch, the context and the threads",
		Long: `Decodes in more and more sequences at once, behind longer and longer contexts, and
with more and more threads; each figure is the best of --reps runs. Remarks name the
points where something is wrong with the growth: where more sequences or threads bring
fewer tokens a second, or where a token's cost rises faster than in a line with the
context.`,
		Example: `  lutra bench growth
  lutra bench growth --shape falcon3-1b --batches 1,8,32 --contexts 128,512,2048 --svg growth.svg`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.flags(f)
	f.IntSliceVar(&o.batches, "batches", []int{1, 2, 4, 8, 16, 32, 64}, "sequences at once, ascending")
	f.IntSliceVar(&o.contexts, "contexts", []int{128, 256, 512, 1024, 2048, 4096, 8192}, "tokens before the decoded ones, ascending; those beyond the model's context are left out")
	f.IntSliceVar(&o.threads, "threads", nil, "threads, ascending (default: 1 to all physical cores); the last number counts for batch and context")
	f.IntVar(&o.decode, "decode", 32, "tokens to decode a sequence")
	f.IntVarP(&o.reps, "reps", "r", 3, "runs a point, of which the best counts")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.StringVar(&o.svg, "svg", "", "draw the curves into `FILE` too")
	return cmd
}

func (o *growthBench) run(cmd *cobra.Command) error {
	if len(o.threads) == 0 {
		o.threads = upTo(cpu.Cores())
	}
	for _, n := range o.threads {
		if err := config.CheckThreads(n); err != nil {
			return usage.Errorf("--%w", err)
		}
	}
	for _, list := range [][]int{o.batches, o.contexts, o.threads} {
		if !slices.IsSorted(list) || len(list) > 0 && (list[0] < 1 || list[len(list)-1] > 1<<16) {
			return usage.Errorf("%v are not ascending numbers from 1 to %d", list, 1<<16)
		}
	}
	if o.decode < 2 || o.reps < 1 {
		return usage.Errorf("--decode must be 2 or more, --reps positive")
	}
	for i, n := range o.threads {
		if err := o.measure(cmd, n, i == len(o.threads)-1); err != nil {
			return err
		}
	}
	slices.SortStableFunc(o.points, func(a, b growthPoint) int {
		return cmp.Or(cmp.Compare(a.Axis, b.Axis), cmp.Compare(a.Series, b.Series), cmp.Compare(a.X, b.X))
	})
	remark(o.points)
	if o.svg != "" {
		var drawing bytes.Buffer
		if err := drawGrowth(&drawing, o.points); err != nil {
			return err
		}
		if err := os.WriteFile(o.svg, drawing.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if o.asJSON {
		return output.JSON(cmd.OutOrStdout(), o.points)
	}
	rows := [][]string{{"axis", "series", "size", "tok/s", "ms a token", "remark"}}
	for _, p := range o.points {
		rows = append(rows, []string{p.Axis, p.Series, fmt.Sprint(p.X), fmt.Sprintf("%.1f", p.TokS), fmt.Sprintf("%.4g", p.MS), p.Remark})
	}
	return output.Table(cmd.OutOrStdout(), rows)
}

// upTo is 1, 2, 4 ... and n.
func upTo(n int) []int {
	var list []int
	for i := 1; i < n; i *= 2 {
		list = append(list, i)
	}
	return append(list, n)
}

// measure adds the points of a number of threads, and with all those of the
// other axes.
func (o *growthBench) measure(cmd *cobra.Command, threads int, all bool) (err error) {
	pool, err := engines.NewPool(threads)
	if err != nil {
		return err
	}
	defer pool.Close()
	bundle, err := o.load(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	room := bundle.Model.Config().Context - o.decode - 1
	if room < 1 {
		return fmt.Errorf("the model's context of %d has no room to decode %d tokens", bundle.Model.Config().Context, o.decode)
	}
	prompt := min(128, room)
	tests := []growthTest{
		{"threads", "prefill", threads, engineTest{prompt: prompt, width: 1}},
		{"threads", "decode 1", threads, engineTest{prompt: 1, decode: o.decode, width: 1}},
		{"threads", "decode 32", threads, engineTest{prompt: 1, decode: o.decode, width: 32}},
	}
	if all {
		for _, n := range o.batches {
			tests = append(tests, growthTest{"batch", "decode", n, engineTest{prompt: 1, decode: o.decode, width: n}})
		}
		for _, n := range o.contexts {
			if n <= room {
				tests = append(tests, growthTest{"context", "decode", n, engineTest{prompt: n, decode: o.decode, width: 1}},
					growthTest{"context", "prefill", n, engineTest{prompt: n, width: 1}})
			}
		}
	}
	bar := output.Progress(cmd.ErrOrStderr(), len(tests), fmt.Sprintf("points on %d threads", threads))
	for i, t := range tests {
		p, err := o.point(cmd.Context(), bundle, pool, t, i > 0)
		if err != nil {
			return fmt.Errorf("%s %s of %d: %w", t.axis, t.series, t.x, err)
		}
		o.points = append(o.points, p)
		_ = bar.Add(1)
	}
	return bar.Finish()
}

// growthTest is a point to measure.
type growthTest struct {
	axis, series string
	x            int
	test         engineTest
}

func (o *growthBench) point(ctx context.Context, bundle *models.Bundle, pool *pool.Pool, t growthTest, warm bool) (growthPoint, error) {
	runtime.GC() // the last point's cache
	runs := engineRuns{bundle: bundle, pool: pool, test: t.test, reps: o.reps, warm: warm, done: func() {}}
	times, err := runs.measure(ctx)
	if err != nil {
		return growthPoint{}, err
	}
	p := growthPoint{Axis: t.axis, Series: t.series, X: t.x, TokS: t.test.speed(times).Max}
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

// What noise may do to the best of a few runs.
const (
	growthDrop = 0.95 // of the best speed at a smaller size
	growthBend = 1.10 // of what a line through the two points before leads to
)

// remark marks the points, sorted by curve and size, where growth goes wrong.
func remark(points []growthPoint) {
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
