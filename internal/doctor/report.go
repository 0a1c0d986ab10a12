package doctor

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
)

// Report is all that there is to say.
type Report struct {
	Machine  *Machine             `json:"machine"`
	Findings []Finding            `json:"findings"`
	Kernels  []kernelbench.Choice `json:"kernels"`
	Speed    *Speed               `json:"speed,omitempty"`
	Expected []Expected           `json:"expected,omitempty"`
}

// Examine makes the report for a server. quick leaves out what is measured, and the speeds.
func Examine(s Setting, models []hub.Entry, quick bool) (*Report, error) {
	m := Look()
	r := &Report{Machine: m, Findings: m.Check(s), Kernels: kernelbench.Choices()}
	if quick {
		return r, nil
	}
	var err error
	if r.Speed, err = Measure(m.Free); err != nil {
		return nil, err
	}
	r.Expected, err = r.Speed.Expect(models, m.Free)
	return r, err
}

// Stops reports whether something would stop a server.
func (r *Report) Stops() bool {
	for _, f := range r.Findings {
		if f.Level == Stops {
			return true
		}
	}
	return false
}

// Print prints the report for people.
func (r *Report) Print(w io.Writer) error {
	m := r.Machine
	rows := [][]string{{"what", "", "found"}, {"machine", "", fmt.Sprintf("%s, %s/%s", orUnknown(m.Processor), m.OS, m.Arch)}}
	for _, f := range r.Findings {
		rows = append(rows, []string{f.What, string(f.Level), f.Says})
	}
	if s := r.Speed; s != nil {
		rows = append(rows, []string{"memory rate", "", fmt.Sprintf("%.1f GB/s by one thread, %.1f by %d", s.ReadOne, s.ReadAll, m.Threads)})
	}
	for _, c := range r.Kernels {
		for i, k := range c.Kernels {
			what := ""
			if i == 0 {
				what = "fastest of " + c.Packing
				k += " (" + c.Why + ")"
			}
			rows = append(rows, []string{what, "", k})
		}
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	if err := r.printChanges(w); err != nil {
		return err
	}
	return r.printSpeeds(w)
}

func orUnknown(s string) string {
	if s == "" {
		return "a processor that the system does not name"
	}
	return s
}

func (r *Report) printChanges(w io.Writer) error {
	n := 0
	for _, f := range r.Findings {
		if f.Level == Good {
			continue
		}
		if n++; n == 1 {
			if _, err := fmt.Fprintln(w, "\nTo change:"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%d. %s: %s.\n", n, f.What, f.Do); err != nil {
			return err
		}
		if f.Run != "" {
			if _, err := fmt.Fprintf(w, "   %s\n", f.Run); err != nil {
				return err
			}
		}
	}
	if n > 0 {
		return nil
	}
	_, err := fmt.Fprintln(w, "\nThere is nothing to change.")
	return err
}

func (r *Report) printSpeeds(w io.Writer) error {
	if len(r.Expected) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\nTo expect of one stream, tokens a second:\n"); err != nil {
		return err
	}
	rows := [][]string{{"model", "answers", "prompts", ""}}
	for _, e := range r.Expected {
		note := ""
		if !e.Fits {
			note = "does not fit into free memory"
		}
		rows = append(rows, []string{e.Model, figure(e.Decode), figure(e.Prompt), note})
	}
	return output.Table(w, rows)
}

// figure has two digits: no estimate has more.
func figure(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	unit := 1.0
	for v/unit >= 100 {
		unit *= 10
	}
	return fmt.Sprintf("%.0f", float64(int(v/unit+0.5))*unit)
}
