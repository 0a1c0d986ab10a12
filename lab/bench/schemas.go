package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
)

// SchemaOptions say how schemas are measured.
type SchemaOptions struct {
	Dir       string // of JSON files with a schema and its tests, as MaskBench has them
	AnyOrder  bool   // properties may stand in any order
	Listed    bool   // objects have the properties alone that the schema lists, as in answers
	Tokenizer *tokenizer.Tokenizer
	Reasons   int // commonest reasons of refusals to list
}

// schemaFile is a file of MaskBench.
type schemaFile struct {
	Schema json.RawMessage
	Tests  []struct {
		Valid bool
		Data  json.RawMessage
	}
}

// SchemaReport is the report of `schema bench`. Times are in microseconds.
type SchemaReport struct {
	Schemas         int            `json:"schemas"`
	Passing         int            `json:"passing"`            // compiled, and right about every instance, order aside
	AsWritten       int            `json:"passing_as_written"` // of them right about the order of properties as well
	Refused         int            `json:"refused"`            // at compilation
	ValidRefused    int            `json:"valid_refused"`
	OutOfOrder      int            `json:"out_of_order"` // valid instances whose properties alone stand in another order than the schema's
	InvalidAccepted int            `json:"invalid_accepted"`
	Failed          int            `json:"failed"` // instances whose grammar became too complex
	Masks           int            `json:"masks"`
	Mask            Quantiles      `json:"mask_us"`
	Compile         Quantiles      `json:"compile_us"`
	Reasons         map[string]int `json:"reasons,omitempty"`
	Wrong           []string       `json:"wrong,omitempty"`   // instances that were judged wrongly
	Bounded         []string       `json:"bounded,omitempty"` // instances that were not judged, and why
}

// Quantiles are of times in microseconds.
type Quantiles struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func quantiles(times []time.Duration) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	us := func(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1e3 }
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	return Quantiles{us(sum) / float64(len(times)), us(times[len(times)/2]), us(times[len(times)*99/100]), us(times[len(times)-1])}
}

// Schemas feeds every instance of a directory token by token through its schema's
// masks, on one thread.
func Schemas(ctx context.Context, o SchemaOptions, errOut io.Writer) (Report, error) {
	files, err := filepath.Glob(filepath.Join(o.Dir, "*.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no JSON files in %s", o.Dir)
	}
	if err != nil {
		return nil, err
	}
	run := schemaRun{SchemaOptions: o, vocabulary: structure.Vocabulary(o.Tokenizer)}
	run.mask = make(grammar.Mask, run.vocabulary.Words())
	run.report.Reasons = map[string]int{}
	meter := &output.Meter{W: errOut, What: "schemas"}
	defer meter.End()
	done := meter.Count(0, len(files))
	for _, name := range files {
		if ctx.Err() != nil {
			break
		}
		if err := run.file(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		done()
	}
	r := &run.report
	r.Masks, r.Mask, r.Compile = len(run.masks), quantiles(run.masks), quantiles(run.compiles)
	reasons := r.reasons()
	for _, reason := range reasons[min(len(reasons), max(o.Reasons, 0)):] {
		delete(r.Reasons, reason)
	}
	return r, ctx.Err()
}

// reasons lists the keys of r.Reasons, the most frequent first.
func (r *SchemaReport) reasons() []string {
	return slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Reasons[b], r.Reasons[a]), cmp.Compare(a, b))
	})
}

type schemaRun struct {
	SchemaOptions
	vocabulary *grammar.Vocabulary
	mask       grammar.Mask
	report     SchemaReport
	masks      []time.Duration
	compiles   []time.Duration
}

// file measures one schema.
func (r *schemaRun) file(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var f schemaFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	r.report.Schemas++
	began := time.Now()
	g, err := r.compile(f.Schema)
	if err != nil {
		r.report.Refused++
		r.report.Reasons[reasonOf(err)]++
		return nil
	}
	r.compiles = append(r.compiles, time.Since(began))
	right, ordered := true, true
	for i, t := range f.Tests {
		if g.Worn() { // as a server makes it anew for further answers
			if g, err = r.compile(f.Schema); err != nil {
				return err
			}
		}
		ok, err := r.accepts(g, spaced(t.Data))
		if err == nil && ok == t.Valid {
			continue
		}
		if err == nil && t.Valid && r.inAnyOrder(f.Schema, t.Data) {
			r.report.OutOfOrder++
			ordered = false
			continue
		}
		right = false
		if err != nil {
			r.report.Failed++
			r.report.Bounded = append(r.report.Bounded, fmt.Sprintf("%s %d: %v", filepath.Base(name), i, err))
			continue
		}
		r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("%s %d", filepath.Base(name), i))
		if t.Valid {
			r.report.ValidRefused++
		} else {
			r.report.InvalidAccepted++
		}
	}
	if right {
		r.report.Passing++
		if ordered {
			r.report.AsWritten++
		}
	}
	return nil
}

func (r *schemaRun) compile(text json.RawMessage) (*grammar.Grammar, error) {
	return schema.Compile(text, schema.Options{AnyOrder: r.AnyOrder, Listed: r.Listed})
}

// inAnyOrder reports whether an instance is accepted with its properties in any order, though not in the schema's. It is not
// timed.
func (r *schemaRun) inAnyOrder(text, instance json.RawMessage) bool {
	if r.AnyOrder {
		return false
	}
	g, err := schema.Compile(text, schema.Options{AnyOrder: true, Listed: r.Listed})
	if err != nil {
		return false
	}
	s, n, err := g.Start().Read(spaced(instance))
	return err == nil && n == len(spaced(instance)) && s.Accepts()
}

// accepts feeds an instance through the masks.
func (r *schemaRun) accepts(g *grammar.Grammar, text []byte) (bool, error) {
	s := g.Start()
	for _, id := range r.Tokenizer.Encode(nil, string(text), tokenizer.Options{}) {
		began := time.Now()
		clear(r.mask)
		err := s.Allow(r.vocabulary, r.mask, nil)
		ok := r.mask.Has(id)
		piece := r.Tokenizer.Piece(id)
		if err == nil && ok {
			s, _, err = s.Read(piece)
		}
		r.masks = append(r.masks, time.Since(began))
		if err != nil || !ok {
			return false, err
		}
	}
	return s.Accepts(), nil
}

// reasonOf returns an error without what is particular to a schema.
func reasonOf(err error) string {
	text := err.Error()
	var e *schema.Error
	if errors.As(err, &e) {
		text = e.Err.Error()
	}
	if len(text) > 80 {
		text = text[:80]
	}
	return text
}

// spaced writes JSON as Python does, and with it MaskBench: a space after each comma
// and colon, characters as they are.
func spaced(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out []byte
	after := byte(0) // what separates the next value from the one before
	var open []byte  // brackets; ':' for an object of which a name was read
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if delim, ok := token.(json.Delim); ok && (delim == ']' || delim == '}') {
			out, open = append(out, byte(delim)), open[:len(open)-1]
			after = ','
			continue
		}
		if after != 0 {
			out = append(out, after, ' ')
		}
		after = ','
		name := len(open) > 0 && open[len(open)-1] == '{'
		if len(open) > 0 && open[len(open)-1] == ':' {
			open[len(open)-1] = '{'
		}
		switch t := token.(type) {
		case json.Delim:
			out, open = append(out, byte(t)), append(open, byte(t))
			after = 0
		case string:
			out = append(append(append(out, '"'), regex.Escape(t)...), '"')
			if name {
				open[len(open)-1], after = ':', ':'
			}
		case nil:
			out = append(out, "null"...)
		default:
			out = fmt.Append(out, t)
		}
	}
}

// Print writes the report for people.
func (r *SchemaReport) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d schemas: %d passing, %d refused at compilation\n%d valid instances refused, %d invalid accepted, %d too complex\n", r.Schemas, r.Passing, r.Refused, r.ValidRefused, r.InvalidAccepted, r.Failed)
	if r.OutOfOrder > 0 && err == nil {
		_, err = fmt.Fprintf(w, "%d more are valid but for the order of their properties: %d schemas pass as the instances are written\n", r.OutOfOrder, r.AsWritten)
	}
	for _, line := range []struct {
		name string
		q    Quantiles
	}{{"mask", r.Mask}, {"compile", r.Compile}} {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-8s median %8.1f µs, mean %8.1f, 99th percentile %10.1f, longest %10.1f\n", line.name, line.q.Median, line.q.Mean, line.q.P99, line.q.Max)
		}
	}
	for _, reason := range r.reasons() {
		if err == nil {
			_, err = fmt.Fprintf(w, "%6d  %s\n", r.Reasons[reason], reason)
		}
	}
	return err
}
