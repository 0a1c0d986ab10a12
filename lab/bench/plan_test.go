package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/usage"
)

// flat costs nothing more for further streams.
var flat = stepCosts{lanes: []int{1, 64}, ms: []float64{10, 10}, prompt: 1}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.4g, want %.4g", what, got, want)
	}
}

func TestARequestByItselfTakesItsPromptAndItsSteps(t *testing.T) {
	r := simulate(flat, plannedLoad{rate: 1e-4, prompt: 300, output: 71, n: 1, streams: 64})
	near(t, "time to first token", r.TTFT[0], 0.3, 1e-9)
	near(t, "latency", r.Latency[0], 0.3+0.7, 1e-9)
}

// Prompts that fill a step each, and answers of one token, are served one after the other:
// a queue whose waiting times follow from one another (Lindley).
func TestPromptsWaitAsInAQueueOfOneServer(t *testing.T) {
	const rate, each = 1.4, 0.512
	random := rand.New(rand.NewPCG(3, 4))
	var waits []float64
	for wait := 0.0; len(waits) < 200_000; wait = max(0, wait+each-random.ExpFloat64()/rate) {
		waits = append(waits, wait+each)
	}
	slices.Sort(waits)
	r := simulate(flat, plannedLoad{rate: rate, prompt: 512, output: 1, n: 1, streams: 64})
	near(t, "median", r.Latency[0], waits[len(waits)/2], 0.1)
	near(t, "95th percentile", r.Latency[1], waits[len(waits)*95/100], 0.15)
	near(t, "busy", r.Busy, rate*each, 0.05)
}

func TestAReplicaSustainsLessOfWhatCostsMore(t *testing.T) {
	costs := stepCosts{lanes: []int{1, 4, 16, 64}, ms: []float64{10, 14, 40, 150}, prompt: 0.5}
	load := plannedLoad{prompt: 100, output: 50, n: 1, streams: 64}
	last := math.Inf(1)
	for _, n := range []int{1, 2, 4, 8} {
		load.n = n
		rate := sustained(costs, load, 5)
		if rate <= 0 || rate > last || rate > costs.limit(load) {
			t.Errorf("n = %d: %v requests a second, %v before, limit %v", n, rate, last, costs.limit(load))
		}
		last = rate
		load.rate = rate
		if got := simulate(costs, load).Latency[1]; got > 5 {
			t.Errorf("n = %d: the 95th percentile is %v s of 5", n, got)
		}
	}
	if hurry := sustained(costs, load, 1.5); hurry >= last {
		t.Errorf("%v requests a second within 1.5 s, %v within 5 s", hurry, last)
	}
}

func TestAStepBetweenMeasuredOnesGoesStraight(t *testing.T) {
	c := stepCosts{lanes: []int{1, 4, 8}, ms: []float64{10, 16, 40}, prompt: 2}
	for _, s := range []struct {
		streams, prompt int
		want            float64
	}{{0, 5, 10}, {1, 0, 10}, {2, 0, 12}, {4, 1, 18}, {6, 0, 28}, {16, 0, 80}} {
		near(t, "step", c.step(s.streams, s.prompt), s.want, 1e-9)
	}
}

func TestASearchOverMachinesGainsWhatItsStepsGetShorterBy(t *testing.T) {
	c := stepCosts{lanes: []int{1, 8, 16, 32, 64}, ms: []float64{10, 12, 20, 40, 80}}
	list := c.shared(64, 100, 11)
	for i, want := range []SharedSearch{{1, 64, 0.9, 1}, {2, 32, 0.5, 1.8}, {4, 16, 0.3, 3}, {8, 8, 0.22, 0.9 / 0.22}} {
		near(t, "seconds", list[i].Seconds, want.Seconds, 1e-9)
		near(t, "gain", list[i].Gain, want.Gain, 1e-9)
		if list[i].Machines != want.Machines || list[i].Each != want.Each {
			t.Errorf("%+v, want %+v", list[i], want)
		}
	}
	if c.shared(1, 100, 11) != nil {
		t.Error("a single sample is shared")
	}
}

func TestPlansAndRatesThatMakeNoSenseAreRefused(t *testing.T) {
	var mistake usage.Error
	for i, change := range []func(o *PlanOptions){
		func(o *PlanOptions) { o.Rate = 0 }, func(o *PlanOptions) { o.Rate = math.NaN() }, func(o *PlanOptions) { o.Price = -1 },
		func(o *PlanOptions) { o.P95 = 0 }, func(o *PlanOptions) { o.Prompt = 0 }, func(o *PlanOptions) { o.Output = 1 << 21 },
		func(o *PlanOptions) { o.Streams = 1 << 20 }, func(o *PlanOptions) { o.N = o.Streams + 1 }, func(o *PlanOptions) { o.Reps = 0 },
		func(o *PlanOptions) { o.Threads = -1 },
	} {
		o := DefaultPlanOptions()
		change(&o)
		if _, err := Plan(context.Background(), o, io.Discard); !errors.As(err, &mistake) {
			t.Errorf("%d: error %v, want one of usage", i, err)
		}
	}
	for _, o := range []LoadOptions{{Rate: -1}, {Rate: math.Inf(1)}, {Rate: 1, Beside: "c=1"}, {Seed: -1}} {
		o.URL, o.Concurrency, o.Requests, o.PromptWords, o.MaxTokens, o.Timeout = "http://127.0.0.1:1/v1", 1, 1, 1, 1, time.Second
		if _, err := Server(context.Background(), o, io.Discard); !errors.As(err, &mistake) {
			t.Errorf("%+v: error %v, want one of usage", o, err)
		}
	}
}

func TestRequestsAtRandomTimesAreEachSentOnce(t *testing.T) {
	var sent []int
	if err := atRandom(context.Background(), 1, 1e4, 20, func(i int) { sent = append(sent, i) }); err != nil || len(sent) != 20 || !slices.IsSorted(sent) {
		t.Errorf("sent %v, error %v", sent, err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := atRandom(over, 1, 1e-3, 1, func(int) { t.Error("sent after the end") }); err == nil {
		t.Error("no error of a context that has ended")
	}
}

func TestAnInterruptedPlanHasTheStepsMeasuredSoFar(t *testing.T) {
	for ran, steps := range map[int]int{2: 0, 3: 0, 5: 2} { // three points come before those of the steps
		ctx, cancel := context.WithCancel(t.Context())
		o := DefaultPlanOptions()
		n := 0
		o.Model, o.Prompt, o.Output, o.Streams, o.Reps, o.Threads, o.ran = "lutra-tiny-s", 4, 4, 8, 1, 1, func() {
			if n++; n == ran {
				cancel()
			}
		}
		r, err := Plan(ctx, o, io.Discard)
		got, _ := r.(PlanReport)
		if !errors.Is(err, context.Canceled) || len(got.Steps) != steps || (r == nil) != (steps == 0) {
			t.Errorf("after %d points: %+v, %v, want %d steps", ran, r, err, steps)
		}
		if steps > 0 {
			var out strings.Builder
			if err := r.Print(&out); err != nil || strings.Count(out.String(), "\n") != 2+1+steps || strings.Contains(out.String(), "modelled") {
				t.Errorf("it prints %s, %v", &out, err)
			}
		}
	}
}
