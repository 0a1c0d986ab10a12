package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/tts/profile"
)

// write writes the reports to --out.
func (e *evaluation) write(report eval.Report) error {
	results := report.Results
	title := fmt.Sprintf("Accuracy and latency, %d problems of %s", len(e.Problems), e.setup.Data)
	for _, part := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"results.json", func(w io.Writer) error { return output.JSON(w, report) }},
		{"results.md", func(w io.Writer) error {
			err := eval.Markdown(w, e.setup, results)
			if len(report.Differences) > 0 {
				err = errors.Join(err, eval.CompareMarkdown(w, report.Differences))
			}
			return err
		}},
		{"pareto.svg", func(w io.Writer) error { return eval.SVG(w, title, results, eval.Latency) }},
		{"tokens.svg", func(w io.Writer) error { return eval.SVG(w, title, results, eval.Generated) }},
		{"npu.svg", func(w io.Writer) error { return eval.SVG(w, title, results, eval.OnNPU) }},
		{"npu-energy.svg", func(w io.Writer) error { return eval.SVG(w, title, results, eval.Energy) }},
	} {
		if e.setup.SoC == "" && strings.HasPrefix(part.name, "npu") {
			continue
		}
		f, err := os.Create(filepath.Join(e.out, part.name))
		if err != nil {
			return err
		}
		if err := errors.Join(part.write(f), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

// writeProfile writes --profile.
func (e *evaluation) writeProfile(report *eval.Report) error {
	p, err := eval.Profile(report, e.models)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	if _, err := profile.Read(text); err != nil { // as a server will
		return fmt.Errorf("--profile: %w", err)
	}
	return os.WriteFile(e.profile, append(text, '\n'), 0o644)
}
