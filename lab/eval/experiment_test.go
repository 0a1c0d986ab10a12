package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// set is n problems whose answers are their numbers.
func set(n int) []Problem {
	problems := make([]Problem, n)
	for i := range problems {
		problems[i] = Problem{Question: fmt.Sprint("q", i), Answer: fmt.Sprint(i)}
	}
	return problems
}

func mustPoints(t *testing.T, methods []string, ns []int, width int) []Point {
	t.Helper()
	points, err := Points([]string{"m"}, methods, ns, width)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// scripted is right where the problem's number is less than the point's n.
func scripted(_ context.Context, p Point, q Question) (Solution, error) {
	if int(q.Seed) < p.N {
		return Solution{Text: fmt.Sprintf("Answer: %d.0", q.Seed), Tokens: 10 * p.N}, nil
	}
	return Solution{Text: "no idea", Candidates: []Candidate{{}, {Text: fmt.Sprintf("Answer: %d", q.Seed), Score: 0.5}}, Tokens: 10 * p.N}, nil
}

func TestPointsAreCombinationsWithoutRepeats(t *testing.T) {
	points, err := Points([]string{"a", "b"}, []string{"single", "single;temperature=0", "best_of_n;select=max", "beam_search"}, []int{1, 2, 8}, 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, p.Model+" "+p.String())
	}
	want := []string{
		"a single", "a single;temperature=0", "a best_of_n;select=max;n=2", "a best_of_n;select=max;n=8", "a beam_search;n=2;width=2", "a beam_search;n=8;width=4",
		"b single", "b single;temperature=0", "b best_of_n;select=max;n=2", "b best_of_n;select=max;n=8", "b beam_search;n=2;width=2", "b beam_search;n=8;width=4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Points = %q, want %q", got, want)
	}
}

func TestImpossiblePointsAreRefused(t *testing.T) {
	for _, c := range []struct {
		method   string
		n, width int
	}{{"magic", 4, 4}, {"best_of_n", 0, 4}, {"best_of_n", 4, 0}, {"beam_search", 6, 4}, {"best_of_n;select=least", 4, 4}, {"best_of_n;n=8", 4, 4}, {"dvts;width=2", 8, 4},
		{"magic", 1, 4}, {"single;n=4", 4, 4}, {"single;temperature=hot", 1, 4}, {"single;temperature=3", 1, 4}, {"single;temperature=NaN", 1, 4}, {"single;select=max", 1, 4}} {
		if points, err := Points([]string{"m"}, []string{c.method}, []int{c.n}, c.width); err == nil {
			t.Errorf("%+v gave %v", c, points)
		}
	}
	if _, err := Points(nil, []string{"single"}, []int{1}, 4); err == nil {
		t.Error("no models: no error")
	}
}

func TestAnExperimentAsksEverythingOnce(t *testing.T) {
	for _, atOnce := range []int{0, 1, 3} {
		e := Experiment{Problems: set(5), Points: mustPoints(t, []string{"single", "best_of_n"}, []int{2, 4}, 4), Concurrency: atOnce, Solve: scripted, Journal: NewJournal()}
		var done atomic.Int64
		e.Done = func() { done.Add(1) }
		if err := e.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(e.Journal.Records()); got != 15 || done.Load() != 15 || e.Left() != 0 {
			t.Errorf("%d at once: %d records, %d reported, %d left; want 15, 15, 0", atOnce, got, done.Load(), e.Left())
		}
		results := Summarise(e.Points, e.Journal.Records(), 5, atOnce)
		var right []float64
		for _, r := range results {
			right = append(right, r.Accuracy)
		}
		if !slices.Equal(right, []float64{0.2, 0.4, 0.8}) {
			t.Errorf("accuracies = %v", right)
		}
	}
}

func TestMachineNoiseAffectsAlternatingPointsEqually(t *testing.T) {
	var asked []string
	e := Experiment{Problems: set(2), Points: mustPoints(t, []string{"single", "best_of_n"}, []int{2}, 4), Journal: NewJournal()}
	e.Solve = func(ctx context.Context, p Point, q Question) (Solution, error) {
		asked = append(asked, q.Text+" "+p.Method)
		return scripted(ctx, p, q)
	}
	if err := e.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"q0 single", "q0 best_of_n", "q1 single", "q1 best_of_n"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestAnInterruptedRunContinuesWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	setup := Setup{Data: "d", Seed: 0, Concurrency: 1}
	points := mustPoints(t, []string{"best_of_n"}, []int{2, 4}, 4)
	run := func(stopAfter int) (asked int, err error) {
		j, err := OpenJournal(path, setup, false)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		e := Experiment{Problems: set(4), Points: points, Journal: j}
		e.Solve = func(ctx context.Context, p Point, q Question) (Solution, error) {
			asked++
			return scripted(ctx, p, q)
		}
		e.Done = func() {
			if asked == stopAfter {
				stop()
			}
		}
		return asked, e.Run(ctx)
	}
	if _, err := run(3); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"model":"m","meth`); err != nil { // the machine went down while it wrote
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if asked, err := run(0); err != nil || asked != 5 {
		t.Errorf("the second run asked %d times, error %v, want 5", asked, err)
	}
	if asked, err := run(0); err != nil || asked != 0 {
		t.Errorf("the third run asked %d times, error %v, want 0", asked, err)
	}
}

func TestJournalsOfOtherSetupsAreRefusedUnlessFresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	open := func(s Setup, fresh bool) error {
		j, err := OpenJournal(path, s, fresh)
		if err != nil {
			return err
		}
		return errors.Join(j.Add(Record{}), j.Close())
	}
	if err := errors.Join(open(Setup{Seed: 1}, false), open(Setup{Seed: 1}, false)); err != nil {
		t.Fatal(err)
	}
	if err := open(Setup{Seed: 2}, false); !errors.Is(err, ErrSetup) {
		t.Errorf("another seed: %v, want ErrSetup", err)
	}
	if err := open(Setup{Seed: 2}, true); err != nil {
		t.Errorf("another seed, fresh: %v", err)
	}
	for _, bad := range []string{"not a journal\n", "{}\n{]\n", strings.Repeat("x", maxLine+1)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(Setup{}, false); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("journal %.20q: error %v, want one that names the line", bad, err)
		}
	}
}

func TestTheFirstErrorEndsARun(t *testing.T) {
	broken := errors.New("broken")
	e := Experiment{Problems: set(100), Points: mustPoints(t, []string{"single"}, []int{1}, 4), Concurrency: 2, Journal: NewJournal()}
	e.Solve = func(ctx context.Context, p Point, q Question) (Solution, error) {
		if q.Text == "q3" {
			return Solution{}, broken
		}
		return scripted(ctx, p, q)
	}
	if err := e.Run(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "m, single, problem 3") {
		t.Errorf("Run = %v", err)
	}
}

func TestAnUnknownMethodIsAnsweredWithThoseThereAre(t *testing.T) {
	_, err := Points([]string{"m"}, []string{"sngle;temperature=0"}, []int{4}, 4)
	if err == nil || !strings.HasSuffix(err.Error(), `there is no method "sngle"; there are single, self_consistency, best_of_n, deepconf, beam_search, dvts, particle_filtering, auto`) {
		t.Errorf("error %v", err)
	}
}

func TestASingleSampleHasATemperatureOfItsOwn(t *testing.T) {
	for method, want := range map[string]float32{"single": 0.7, "single;temperature=0": 0, "single;temperature=1.5": 1.5, "best_of_n;temperature=1": 0.7} {
		if got, err := (Point{Method: method, N: 1}).Temperature(0.7); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", method, got, err, want)
		}
	}
}

func TestAJournalKeepsWhatWasAskedAndAnswered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, Setup{}, false)
	if err != nil {
		t.Fatal(err)
	}
	e := Experiment{Problems: set(3), Points: mustPoints(t, []string{"best_of_n"}, []int{2}, 4), Journal: j, Solve: scripted}
	if err := errors.Join(e.Run(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	if j.Records()[2].Sample != nil {
		t.Error("texts stay in memory")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	want := `"answer":"","right":false,"any":true,"tokens":20,`
	sample := `"question":"q2","reference":"2","text":"no idea","candidates":[{"text":"","answer":"","right":false,"score":0,"votes":0,"chosen":false},{"text":"Answer: 2","answer":"2","right":true,"score":0.5,"votes":0,"chosen":false}]}`
	if len(lines) != 4 || !strings.Contains(lines[3], want) || !strings.HasSuffix(lines[3], sample) {
		t.Errorf("the journal is\n%s\nwant %s and\n%s", text, want, sample)
	}
	if j, err = OpenJournal(path, Setup{}, false); err != nil || len(j.Records()) != 3 || j.Records()[2].Sample != nil {
		t.Errorf("opened again: %v, %+v", err, j.Records())
	}
	_ = j.Close()
}

func TestAJournalIsOfTheModelsThatWereMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	open := func(models map[string]string) error {
		j, err := OpenJournal(path, Setup{Models: models}, false)
		if err != nil {
			return err
		}
		return j.Close()
	}
	if err := errors.Join(open(nil), open(map[string]string{"m": "a"})); err != nil {
		t.Errorf("a journal that names no models: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(open(map[string]string{"m": "a"}), open(map[string]string{"m": "a"})); err != nil {
		t.Error(err)
	}
	if err := open(map[string]string{"m": "b"}); !errors.Is(err, ErrSetup) {
		t.Errorf("another file of the same name: %v, want ErrSetup", err)
	}
}
