package eval

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// heads are the columns of a report.
var heads = []string{"model", "method", "n", "width", "right %", "95 % interval", "any right %", "tokens", "verifier tokens", "latency ms", "× single", "tokens/s", "front"}

// Rows returns a table's cells, the heads first.
func Rows(results []Result) [][]string {
	modelled := slices.ContainsFunc(results, func(r Result) bool { return r.ModelledMS > 0 })
	rows := [][]string{heads}
	if modelled {
		rows[0] = append(slices.Clip(heads), "modelled ms", "modelled mJ")
	}
	for _, r := range results {
		width, found, verifier, times, front := "", "", "", "", "" // unknown or without meaning
		if r.Width > 0 {
			width = strconv.Itoa(r.Width)
		}
		if r.Any != nil {
			found = percent(*r.Any)
		}
		if r.Verifier > 0 {
			verifier = fmt.Sprintf("%.0f", r.Verifier)
		}
		if r.VsSingle > 0 {
			times = fmt.Sprintf("%.2f", r.VsSingle)
		}
		if r.Pareto {
			front = "●"
		}
		rows = append(rows, []string{
			r.Model, r.Method, strconv.Itoa(r.N), width, percent(r.Accuracy), percent(r.Low) + " – " + percent(r.High), found,
			fmt.Sprintf("%.0f", r.Tokens), verifier, fmt.Sprintf("%.1f", r.LatencyMS), times,
			fmt.Sprintf("%.0f", r.TokensPerSec), front,
		})
		if modelled {
			last := &rows[len(rows)-1]
			*last = append(*last, fmt.Sprintf("%.2f", r.ModelledMS), fmt.Sprintf("%.1f", r.ModelledMJ))
		}
	}
	return rows
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// Markdown writes the setup and the results as a page's part.
func Markdown(w io.Writer, s Setup, results []Result) error {
	problems := 0
	for _, r := range results {
		problems = max(problems, r.Problems)
	}
	thinking := ""
	if s.Thinking != "" {
		thinking = ", thinking " + s.Thinking
	}
	if _, err := fmt.Fprintf(w, "%d problems of %s (%s), temperature %v%s, seed %d, at most %d tokens a candidate, %d at once; %s.\n\n",
		problems, s.Data, s.Hash, s.Temperature, thinking, s.Seed, s.MaxTokens, s.Concurrency, s.Where); err != nil {
		return err
	}
	if err := table(w, Rows(results), 2); err != nil {
		return err
	}
	if s.SoC != "" {
		if _, err := fmt.Fprintf(w, "\n*modelled*: a bound on time and energy of the NPU of %s, from the rows and contexts of every step; launches, norms and sampling are not in it.\n", s.SoC); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\n*any right*: some candidate is right, which a perfect choice would find. *front*: no other point is both as accurate and as fast.")
	return err
}

// table writes rows, the heads first, of which so many columns are words and the rest numbers.
func table(w io.Writer, rows [][]string, words int) error {
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |"
		if i == 0 {
			line += "\n|" + strings.Repeat("---|", words) + strings.Repeat("---:|", len(row)-words)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
