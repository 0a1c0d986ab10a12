package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// stream and prompt are the two kinds of wants.
func stream(have int) Demand       { return Demand{Computed: have, Target: have + 1, LogitsFrom: have} }
func prompt(have, upTo int) Demand { return Demand{Computed: have, Target: upTo, LogitsFrom: upTo - 1} }

// linear is a machine whose steps take fixed + slope·tokens milliseconds.
func linear(fixed, slope float64) func(int) float64 {
	return func(n int) float64 {
		if n == 0 {
			return 0
		}
		return (fixed + slope*float64(n)) / 1e3
	}
}

// back makes wants background ones.
func back(wants ...Demand) []Demand {
	wants = slices.Clone(wants)
	for i := range wants {
		wants[i].Background = true
	}
	return wants
}

// some is n times the same.
func some[T any](n int, v T) []T { return slices.Repeat([]T{v}, n) }

func TestPlanFillsWholeTilesStreamsFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants []Demand
		l     Limits
		want  []int
	}{
		{"a lone prompt takes the whole step", []Demand{prompt(0, 1000)}, Limits{Tokens: 256, Rows: 8}, []int{256}},
		{"a short prompt is computed at once", []Demand{prompt(10, 30)}, Limits{Tokens: 256, Rows: 8}, []int{20}},
		{"streams leave the rest of their tile", []Demand{stream(5), prompt(0, 100), stream(9)}, Limits{Tokens: 256, Rows: 8}, []int{1, 30, 1}},
		{"a full tile of streams still admits half a tile", slices.Concat(some(20, stream(1)), []Demand{prompt(0, 99)}),
			Limits{Tokens: 256, Rows: 64}, append(some(20, 1), 44)},
		{"the oldest prompt gets half, the shortest the rest", []Demand{prompt(0, 900), prompt(0, 400), prompt(0, 10)}, Limits{Tokens: 64, Rows: 8}, []int{32, 22, 10}},
		{"what the others leave goes back to the oldest", []Demand{prompt(0, 900), prompt(0, 10)}, Limits{Tokens: 64, Rows: 8}, []int{54, 10}},
		{"rows of logits bound scoring", []Demand{{Computed: 0, Target: 100, LogitsFrom: 0}}, Limits{Tokens: 64, Rows: 8}, []int{8}},
		{"tokens before the first wanted row are not bound", []Demand{{Computed: 0, Target: 100, LogitsFrom: 20}}, Limits{Tokens: 64, Rows: 8}, []int{28}},
		{"streams leave a row to prompts", append(some(4, stream(1)), prompt(0, 3)), Limits{Tokens: 64, Rows: 4}, []int{1, 1, 1, 0, 3}},
	} {
		var s Scheduler
		if got := s.Plan(c.wants, c.l); !slices.Equal(got, c.want) {
			t.Errorf("%s: plan = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCreditDecidesWhatDelaysStreams(t *testing.T) {
	two := []Demand{stream(1), stream(1)} // alone 12 ms; a tile 42 ms; two 74 ms
	with := func(more ...Demand) []Demand { return slices.Concat(two, more) }
	ms := func(prompts, background float64) [Accounts]float64 {
		return [Accounts]float64{prompts / 1e3, background / 1e3}
	}
	for _, c := range []struct {
		name   string
		wants  []Demand
		credit [Accounts]float64
		others bool
		long   float64 // longest step, ms
		want   []int
		need   float64 // ms, of either kind
	}{
		{"too little is saved for a whole tile", with(prompt(0, 99)), ms(29, 1000), false, 100, []int{1, 1, 0}, 30},
		{"enough fills the tile", with(prompt(0, 99)), ms(30.5, 0), false, 100, []int{1, 1, 30}, 0},
		{"more goes further", with(prompt(0, 99)), ms(50.5, 0), false, 100, []int{1, 1, 50}, 0},
		{"up to the longest step", with(prompt(0, 99)), ms(500, 0), false, 72.5, []int{1, 1, 60}, 0},
		{"but a tile it may have", with(prompt(0, 99)), ms(500, 0), false, 20, []int{1, 1, 30}, 0},
		{"what is short needs little", with(prompt(0, 5)), ms(5.5, 0), false, 100, []int{1, 1, 5}, 0},
		{"searches save too", with(back(stream(1), stream(1))...), ms(1000, 1.5), false, 100, []int{1, 1, 0, 0}, 2},
		{"searches of enough credit", with(back(stream(1), stream(1))...), ms(0, 2.5), false, 100, []int{1, 1, 1, 1}, 0},
		{"their prompts share the room", with(back(stream(1), prompt(0, 99))...), ms(0, 30.5), false, 100, []int{1, 1, 1, 29}, 0},
		{"both have their own", with(append(back(stream(1)), prompt(0, 10))...), ms(10.5, 0.5), false, 100, []int{1, 1, 0, 10}, 1},
		{"without streams there is nobody to delay", back(some(40, stream(1))...), ms(0, 0), false, 100, some(40, 1), 0},
		{"but for other engines'", back(some(40, stream(1))...), ms(0, 41), true, 100, make([]int, 40), 42},
		{"which may have been waited for enough", back(some(40, stream(1))...), ms(0, 43), true, 100, append(some(33, 1), make([]int, 7)...), 0},
		{"prompts leave a share of a step without streams to searches", append([]Demand{prompt(0, 900)}, back(stream(1))...), ms(0, 5), false, 0, []int{192, 1}, 0},
	} {
		var s Scheduler
		l := Limits{Tokens: 256, Rows: 64, Longest: c.long / 1e3, Time: linear(10, 1), Policy: Policy{Credit: c.credit, OtherDecoding: c.others, BackgroundPays: Background}}
		if got := s.Plan(c.wants, l); !slices.Equal(got, c.want) {
			t.Errorf("%s: plan = %v, want %v", c.name, got, c.want)
		}
		if need := max(s.Need[0], s.Need[1]) * 1e3; math.Abs(need-c.need) > 1e-6 {
			t.Errorf("%s: short of %v ms, want %v", c.name, need, c.need)
		}
	}
}

func TestBriefStepsAreAsLongAsEfficiencyDemands(t *testing.T) {
	for _, c := range []struct {
		name string
		time func(int) float64
		want int
	}{
		{"tokens dominate", linear(0.5, 1), 32},
		{"weights dominate", linear(100, 1), 512},
		{"something between", linear(10, 1), 128},
	} {
		l := Limits{Tokens: 512, Rows: 128, Time: c.time, Optimistic: c.time, Policy: Policy{ShortSteps: true}}
		var s Scheduler
		if got := s.Plan(back(prompt(0, 900)), l)[0]; got != c.want {
			t.Errorf("%s: %d tokens of a background prompt, want %d", c.name, got, c.want)
		}
		if got := s.Plan([]Demand{prompt(0, 900)}, l)[0]; got != 512 {
			t.Errorf("%s: %d tokens of an interactive prompt, want 512", c.name, got)
		}
	}
}

func TestTooManyStreamsAlternate(t *testing.T) {
	var s Scheduler
	served := make([]int, 10)
	for range 10 {
		for i, n := range s.Plan(some(10, stream(3)), Limits{Tokens: 32, Rows: 4}) {
			served[i] += n
		}
	}
	if want := some(10, 4); !slices.Equal(served, want) {
		t.Errorf("served %v, want %v", served, want)
	}
}

func TestOfTooManySearchesTheOldestGetsHalfAndTheOthersAlternate(t *testing.T) {
	var s Scheduler
	served := make([]int, 14)
	for range 6 {
		for i, n := range s.Plan(back(some(14, stream(3))...), Limits{Tokens: 32, Rows: 4}) {
			served[i] += n
		}
	}
	if want := append([]int{6, 6}, some(12, 1)...); !slices.Equal(served, want) {
		t.Errorf("served %v, want %v", served, want)
	}
}

func TestPlanKeepsItsLimitsAndEveryWantIsServedInTheEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s Scheduler
		l := Limits{Tokens: Tile * (1 + r.IntN(6)), Rows: 4 + r.IntN(40), Longest: r.Float64() / 10, Time: linear(r.Float64()*50, r.Float64()*3)}
		wants := make([]Demand, 1+r.IntN(80))
		total := 0
		for i := range wants {
			w := &wants[i]
			w.Background = r.IntN(2) == 0
			w.Computed = r.IntN(50)
			w.Target = w.Computed + 1 + r.IntN(2)*r.IntN(300)
			w.LogitsFrom = w.Computed + r.IntN(w.Target-w.Computed)
			if r.IntN(4) == 0 {
				w.LogitsFrom = NoRows
			}
			total += w.Left()
		}
		for steps := 0; len(wants) > 0; steps++ {
			if steps > 3*total {
				t.Fatalf("%d wants are not served after %d steps", len(wants), steps)
			}
			for k := range l.Credit { // rich every third step
				l.Credit[k] = 0.05 * float64(r.IntN(3)/2) * 1e3
			}
			tokens, rows, given := 0, 0, s.Plan(wants, l)
			for i, n := range given {
				if n < 0 || n > wants[i].Left() {
					t.Fatalf("%+v is given %d tokens", wants[i], n)
				}
				tokens += n
				rows += wants[i].Rows(n)
				wants[i].Computed += n
			}
			if tokens == 0 || tokens > l.Tokens || rows > l.Rows {
				t.Fatalf("a step of %d tokens and %d rows, limits %+v", tokens, rows, l)
			}
			wants = slices.DeleteFunc(wants, func(w Demand) bool { return w.Left() == 0 })
		}
	}
}

func TestAWholeTextIsPlannedInOnePieceHoweverLong(t *testing.T) {
	whole := func(n int) Demand { return Demand{Target: n, Whole: true} }
	for _, c := range []struct {
		name  string
		wants []Demand
		l     Limits
		want  []int
	}{
		{"one that is longer than a step", []Demand{whole(600), whole(2), whole(100)}, Limits{Tokens: 512, Rows: 4}, []int{600, 0, 0}},
		{"those that fit beside the oldest", []Demand{whole(300), whole(300), whole(200)}, Limits{Tokens: 512, Rows: 4}, []int{300, 0, 200}},
		{"background ones wait for the next step", append([]Demand{whole(600)}, back(whole(1), whole(5))...), Limits{Tokens: 512, Rows: 4}, []int{600, 0, 0}},
		{"one token is a stream", []Demand{whole(1), whole(9)}, Limits{Tokens: 512, Rows: 4}, []int{1, 9}},
		{"credit for a piece is enough for all", []Demand{whole(100)},
			Limits{Tokens: 512, Rows: 4, Time: linear(0, 1), Optimistic: linear(0, 1), Policy: Policy{OtherDecoding: true, Credit: [Accounts]float64{Prefill: 33}}}, []int{100}},
		{"without credit it waits", []Demand{whole(100)},
			Limits{Tokens: 512, Rows: 4, Time: linear(0, 1), Optimistic: linear(0, 1), Policy: Policy{OtherDecoding: true}}, []int{0}},
	} {
		var s Scheduler
		if got := s.Plan(c.wants, c.l); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
