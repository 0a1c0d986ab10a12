package eval

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Difference compares a point with another of the same model on the problems that both have
// answered: problem by problem, which tells more than two intervals do.
type Difference struct {
	Point
	Base     Point   `json:"base"`
	Problems int     `json:"problems"`
	Better   int     `json:"better"` // problems that this point alone has right
	Worse    int     `json:"worse"`  // problems that the base alone has right
	Delta    float64 `json:"delta"`  // of accuracies, as shares
	Low      float64 `json:"ci_low"` // 95 % interval of Delta: percentiles of a paired bootstrap over the problems (Efron & Tibshirani 1993)
	High     float64 `json:"ci_high"`
	P        float64 `json:"p"`      // exact, two-sided, that better and worse are equally likely (McNemar 1947)
	Tokens   float64 `json:"tokens"` // generated, as a multiple of the base's
}

// Compare compares all points with the base of their model: the first whose method, with or without its size, has that name.
// The base MODEL/METHOD belongs to one model. It counts the first problems only.
func Compare(points []Point, records []Record, problems int, base string) ([]Difference, error) {
	bases := map[string]Point{}
	named := func(p Point, base string) bool { return p.Method == base || p.String() == base }
	for _, p := range points {
		if _, found := bases[p.Model]; !found && named(p, base) {
			bases[p.Model] = p
		}
	}
	if at := slices.IndexFunc(points, func(p Point) bool {
		rest, ok := strings.CutPrefix(base, p.Model+"/")
		return ok && named(p, rest)
	}); at >= 0 {
		for _, p := range points {
			bases[p.Model] = points[at]
		}
	}
	if len(bases) == 0 {
		return nil, fmt.Errorf("no method is %q", base)
	}
	at := map[key]Record{}
	for _, r := range records {
		at[key{r.Point, r.Problem}] = r
	}
	var out []Difference
	for _, p := range points {
		b, found := bases[p.Model]
		if !found || p == b {
			continue
		}
		d := Difference{Point: p, Base: b}
		tokens, of := 0, 0
		for i := range problems {
			mine, has := at[key{p, i}]
			other, also := at[key{b, i}]
			if !has || !also {
				continue
			}
			d.Problems++
			tokens, of = tokens+mine.Tokens, of+other.Tokens
			switch {
			case mine.Right && !other.Right:
				d.Better++
			case other.Right && !mine.Right:
				d.Worse++
			}
		}
		if d.Problems == 0 {
			continue
		}
		d.Delta = float64(d.Better-d.Worse) / float64(d.Problems)
		d.Low, d.High = bootstrap(d.Better, d.Worse, d.Problems)
		d.P = McNemar(d.Better, d.Worse)
		d.Tokens = float64(tokens) / float64(max(of, 1))
		out = append(out, d)
	}
	return out, nil
}

// resamples is the number of times that the bootstrap draws all problems anew.
const resamples = 10000

// bootstrap returns the 95 % percentile interval of (better - worse) / n when n problems are
// drawn with replacement from n of which so many are better and worse. It is the same every
// time.
func bootstrap(better, worse, n int) (low, high float64) {
	random := rand.New(rand.NewPCG(uint64(n), uint64(better)<<32|uint64(worse)))
	deltas := make([]float64, resamples)
	for i := range deltas {
		sum := 0
		for range n {
			switch at := random.IntN(n); {
			case at < better:
				sum++
			case at < better+worse:
				sum--
			}
		}
		deltas[i] = float64(sum) / float64(n)
	}
	slices.Sort(deltas)
	return deltas[resamples*25/1000], deltas[resamples*975/1000-1]
}

// McNemar returns the exact two-sided p of better against worse. It is the probability that fair coins, one for each problem
// that one method alone has right, fall as unequally or more so.
func McNemar(better, worse int) float64 {
	n := float64(better + worse)
	all, _ := math.Lgamma(n + 1)
	p := 0.0
	for k := range min(better, worse) + 1 {
		one, _ := math.Lgamma(float64(k) + 1)
		other, _ := math.Lgamma(n - float64(k) + 1)
		p += math.Exp(all - one - other - n*math.Ln2)
	}
	return min(1, 2*p)
}

// against names the base, with its model if that is another.
func (d *Difference) against() string {
	if d.Base.Model != d.Model {
		return d.Base.Model + "/" + d.Base.String()
	}
	return d.Base.String()
}

// CompareRows returns a table's cells, the heads first.
func CompareRows(list []Difference) [][]string {
	rows := [][]string{{"model", "method", "against", "problems", "right %", "95 % interval", "better", "worse", "McNemar p", "× tokens"}}
	for _, d := range list {
		rows = append(rows, []string{
			d.Model, d.Point.String(), d.against(), fmt.Sprint(d.Problems), fmt.Sprintf("%+.1f", 100*d.Delta),
			fmt.Sprintf("%+.1f – %+.1f", 100*d.Low, 100*d.High), fmt.Sprint(d.Better), fmt.Sprint(d.Worse), fmt.Sprintf("%.3f", d.P), fmt.Sprintf("%.2f", d.Tokens),
		})
	}
	return rows
}

// CompareMarkdown writes the differences as a page's part.
func CompareMarkdown(w io.Writer, list []Difference) error {
	if _, err := fmt.Fprint(w, "\nProblem by problem; the interval is a paired bootstrap's:\n\n"); err != nil {
		return err
	}
	return table(w, CompareRows(list), 3)
}
