package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// ProfileReport says where the time of one test went.
type ProfileReport struct {
	Test    string        `json:"test"`
	TokS    float64       `json:"tok_s"`
	Seconds float64       `json:"seconds"`
	Steps   int64         `json:"steps"`
	Parts   []ProfilePart `json:"parts"`
	Waiting float64       `json:"workers_waiting"` // share of their time in kernels that workers had nothing to do
}

// ProfileReports are the reports of `bench engine --profile`.
type ProfileReports []ProfileReport

// ProfilePart is a kind of kernel, or the time between kernels.
type ProfilePart struct {
	Name     string  `json:"name"`
	Calls    int64   `json:"calls,omitempty"`
	MS       float64 `json:"ms"`
	Share    float64 `json:"share"`
	GMACs    float64 `json:"gmac_s,omitempty"`
	Fill     float64 `json:"lanes_filled,omitempty"` // share of the tiles' lanes that carried a token
	GBs      float64 `json:"gb_s,omitempty"`         // of weights, keys and values
	Roofline float64 `json:"roofline,omitempty"`     // the least time that this machine allows, over the time taken
}

// stepTimes adds up an engine's steps. Read it when the engine has stopped.
type stepTimes struct {
	steps          int64
	tokens, lanes  int64         // lanes: of the tiles of 32 that the tokens begin
	step, forward  time.Duration // forward: of all models
	guessed, right int64         // guesses, and right ones among them
}

func (s *stepTimes) add(st batcher.StepStats) {
	s.steps++
	s.tokens += int64(st.Tokens)
	s.lanes += int64(st.Lanes)
	s.step += st.Duration
	s.forward += st.Forward + st.Drafting
	for k := range st.Drafted {
		s.guessed, s.right = s.guessed+int64(st.Drafted[k]), s.right+int64(st.Accepted[k])
	}
}

// fill returns the share of the lanes that carried a token.
func (s *stepTimes) fill() float64 { return float64(s.tokens) / float64(max(1, s.lanes)) }

// runProfile measures each test with the pool's meter on.
func (o *EngineOptions) runProfile(ctx context.Context, setup engineRuns, tests []engineTest, errOut io.Writer) (Report, error) {
	if i := slices.IndexFunc(tests, func(t engineTest) bool { return t.deep }); i >= 0 {
		return nil, usage.Errorf("--profile counts prompts too: not for %s", tests[i].name)
	}
	pool := setup.pool
	machine := kernelbench.Measure(min(time.Second/4, time.Duration(o.Reps)*time.Second/20)) // as careful as the runs
	printMachine(errOut, machine)
	meter := pool.Meter()
	meter.Enable()
	shown := &output.Meter{W: errOut, What: "runs"}
	defer shown.End()
	done := shown.Count(0, len(tests)*(o.Reps+1))
	reports := ProfileReports{}
	for _, t := range tests {
		runs := setup
		runs.test, runs.done = t, done
		if _, err := runs.measure(ctx); err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		before, busy, steps := meter.Costs(), meter.Busy(), &stepTimes{}
		runs.warm, runs.reps, runs.onStep = true, o.Reps, steps.add
		times, err := runs.measure(ctx)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if ctx.Err() != nil { // the meter has counted a part of a run
			break
		}
		p := profile{machine: machine, threads: pool.Threads(), steps: steps, costs: meter.Costs(), busy: meter.Busy() - busy}
		for i := range p.costs {
			p.costs[i] = since(p.costs[i], before[i])
		}
		for _, took := range times {
			p.wall += took.whole
		}
		r := p.report()
		r.Test, r.TokS = t.name, t.speed(times).Median
		reports = append(reports, r)
	}
	if len(reports) == 0 {
		return nil, ctx.Err()
	}
	return reports, ctx.Err()
}

// Print implements Report.
func (reports ProfileReports) Print(w io.Writer) error {
	for i := range reports {
		if err := reports[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

func since(c, before meter.Cost) meter.Cost {
	c.Calls -= before.Calls
	c.Time -= before.Time
	c.MACs -= before.MACs
	c.Idle -= before.Idle
	c.Bytes -= before.Bytes
	return c
}

// profile has the counts of all runs of a test, which took wall.
type profile struct {
	machine    kernelbench.Machine
	threads    int
	wall, busy time.Duration
	costs      []meter.Cost
	steps      *stepTimes
}

func (p *profile) report() ProfileReport {
	r := ProfileReport{Seconds: p.wall.Seconds(), Steps: p.steps.steps}
	part := func(name string, took time.Duration) ProfilePart {
		took = max(took, 0)
		return ProfilePart{Name: name, MS: milliseconds(took), Share: took.Seconds() / p.wall.Seconds()}
	}
	var model, sampling, all time.Duration
	for _, c := range p.costs {
		if c.Calls == 0 {
			continue
		}
		all += c.Time
		if c.Kind == meter.Sampling {
			sampling = c.Time
		} else {
			model += c.Time
		}
		k := part(c.Kind.String(), c.Time)
		k.Calls = c.Calls
		k.GMACs, k.GBs = float64(c.MACs)/c.Time.Seconds()/1e9, float64(c.Bytes)/c.Time.Seconds()/1e9
		if c.MACs > 0 {
			k.Fill = float64(c.MACs) / float64(c.MACs+c.Idle)
		}
		k.Roofline = max(k.GMACs/p.machine.MACs(c.Kind, p.threads), k.GBs/p.machine.Read(p.threads))
		r.Parts = append(r.Parts, k)
	}
	r.Parts = append(r.Parts,
		part("between kernels", p.steps.forward-model),
		part("scheduling", p.steps.step-p.steps.forward-sampling),
		part("idle", p.wall-p.steps.step))
	if workers := all.Seconds() * float64(p.threads); workers > 0 {
		r.Waiting = max(0, 1-p.busy.Seconds()/workers)
	}
	return r
}

func (r *ProfileReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %.1f tok/s, %d steps in %.2f s; workers waited %.0f %% of their time within kernels\n",
		r.Test, r.TokS, r.Steps, r.Seconds, 100*r.Waiting)
	rate := func(v float64, digits int) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.*f", digits, v)
	}
	rows := [][]string{{"kernel", "calls", "ms", "share", "lanes filled", "GMAC/s", "GB/s", "of roofline"}}
	for _, p := range r.Parts {
		rows = append(rows, []string{p.Name, rate(float64(p.Calls), 0), fmt.Sprintf("%.1f", p.MS), fmt.Sprintf("%.1f %%", 100*p.Share),
			rate(p.Fill, 2), rate(p.GMACs, 1), rate(p.GBs, 1), rate(p.Roofline, 2)})
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
