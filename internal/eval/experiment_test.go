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
	return Solution{Text: "no idea", Candidates: []string{"", fmt.Sprintf("Answer: %d", q.Seed)}, Tokens: 10 * p.N}, nil
}

func TestPointsAreCombinationsWithoutRepeats(t *testing.T) {
	points, err := Points([]string{"a", "b"}, []string{"single", "best_of_n;select=max", "beam_search"}, []int{1, 2, 8}, 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, p.Model+" "+p.String())
	}
	want := []string{
		"a single", "a best_of_n;select=max;n=2", "a best_of_n;select=max;n=8", "a beam_search;n=2;width=2", "a beam_search;n=8;width=4",
		"b single", "b best_of_n;select=max;n=2", "b best_of_n;select=max;n=8", "b beam_search;n=2;width=2", "b beam_search;n=8;width=4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Points = %q, want %q", got, want)
	}
}

func TestImpossiblePointsAreRefused(t *testing.T) {
	for _, c := range []struct {
		method   string
		n, width int
	}{{"magic", 4, 4}, {"best_of_n", 0, 4}, {"best_of_n", 4, 0}, {"beam_search", 6, 4}, {"best_of_n;select=least", 4, 4}, {"best_of_n;n=8", 4, 4}, {"dvts;width=2", 8, 4}} {
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
