package selftest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// Kind and Format are the first fields of a report, by which programs know one.
const (
	Kind   = "lutra npu selftest"
	Format = 1
)

// Report holds the findings of a self-test. It is saved before each part of the test runs, so that the report
// of a device that takes the program or the phone down names the part.
type Report struct {
	Kind       string      `json:"kind"`
	Format     int         `json:"format"`
	Backend    string      `json:"backend"`
	Chip       bool        `json:"chip"` // a chip computed, and no emulation
	Lutra      string      `json:"lutra"`
	System     string      `json:"system"`
	Started    time.Time   `json:"started"`
	Running    string      `json:"running,omitempty"` // the part under way: the test has not ended
	Opening    []Step      `json:"opening"`
	Device     device.Info `json:"device"`
	Coherence  []Coherence `json:"coherence"`
	Operations []Operation `json:"operations"`
	Times      []Time      `json:"times"`
	Verdict    Verdict     `json:"verdict"`
}

// Step is a call that opens the device.
type Step struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	Try   string `json:"try,omitempty"` // what may repair it
}

// Coherence is whether one side sees what the other has written, over and over in the same place.
type Coherence struct {
	Direction string `json:"direction"`
	Rounds    int    `json:"rounds"`
	Stale     int    `json:"stale"`           // rounds in which old bytes were read
	First     int    `json:"first,omitempty"` // of them, from 1 on
	Error     string `json:"error,omitempty"`
}

// Operation holds the device's results of an operation's packets, beside hexagon/ref's definition.
type Operation struct {
	Name    string  `json:"name"`
	Cases   int     `json:"cases"`
	Wrong   int     `json:"wrong"`              // cases with other bits
	Case    int     `json:"case,omitempty"`     // the first of them, from 1 on
	Offset  int     `json:"offset,omitempty"`   // of its first wrong byte, in its operands
	Numbers int     `json:"numbers,omitempty"`  // that are wrong in it
	ULP     float64 `json:"most_ulp,omitempty"` // by which a float of it is wrong at most
	// Rounding says that a chip's floats differ in their last bit alone: its units round otherwise than the definition.
	Rounding bool   `json:"rounding,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Time is one measurement.
type Time struct {
	Name  string  `json:"name"`
	Of    int     `json:"of,omitempty"` // bytes of a copy, tiles of a product
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Runs  int     `json:"runs"`
}

// Verdict is the report in a sentence, and all that failed by its name.
type Verdict struct {
	OK     bool     `json:"ok"`
	Text   string   `json:"text"`
	Faults []string `json:"faults"`
}

// judge makes the verdict of a test that has ended.
func (r *Report) judge() {
	var faults, rounded []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, s := range r.Opening {
		if !s.OK {
			add("opening, %s: %s", s.Name, s.Error)
		}
	}
	for _, c := range r.Coherence {
		switch {
		case c.Error != "":
			add("coherence, %s: %s", c.Direction, c.Error)
		case c.Stale > 0:
			add("coherence, %s: old bytes in %d of %d rounds, first in round %d", c.Direction, c.Stale, c.Rounds, c.First)
		}
	}
	for _, o := range r.Operations {
		switch {
		case o.Error != "":
			add("operation, %s: %s", o.Name, o.Error)
		case o.Rounding:
			rounded = append(rounded, o.Name)
		case o.Wrong > 0:
			add("operation, %s: %d of %d cases differ from the definition, case %d first: %d numbers from byte %d on%s", o.Name, o.Wrong, o.Cases, o.Case, o.Numbers, o.Offset, ulps(o.ULP))
		}
	}
	v := Verdict{OK: len(faults) == 0, Faults: faults}
	of := "The NPU"
	if !r.Chip {
		of = "The emulated NPU"
	}
	switch {
	case r.Running != "":
		v.OK, v.Text = false, "The test ended while this was under way: "+r.Running+". Please report it with this file."
	case v.OK && len(rounded) > 0:
		v.Text = of + " computes every operation, and memory is coherent: models can run on it. Answers may differ from an emulation's, since these round otherwise in the last bit: " + strings.Join(rounded, ", ") + "."
	case v.OK:
		v.Text = of + " computes every operation as it is defined, bit for bit, and memory is coherent: models can run on it."
	case len(r.Opening) > 0 && !r.Opening[len(r.Opening)-1].OK:
		v.Text = of + " could not be opened: " + faults[0] + "."
	default:
		v.Text = fmt.Sprintf("%s is not to be trusted with a model: %s.", of, faults[0])
		if n := len(faults) - 1; n > 0 {
			v.Text = fmt.Sprintf("%s is not to be trusted with a model: %s; and %d further faults.", of, faults[0], n)
		}
	}
	if !r.Chip && len(r.Times) > 0 {
		v.Text += " Its times are an emulation's, and say nothing about a chip."
	}
	r.Verdict = v
}

func ulps(n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", by up to %.0f ULP", n)
}

// Time returns the measurement of that name and size; ok is false if there is none.
func (r *Report) Time(name string, of int) (t Time, ok bool) {
	for _, t := range r.Times {
		if t.Name == name && t.Of == of && t.Value > 0 {
			return t, true
		}
	}
	return Time{}, false
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	unknown := func(s string) string {
		if s == "" || s == "0" {
			return "unknown"
		}
		return s
	}
	fmt.Fprintf(&b, "%s\n\n", r.Verdict.Text)
	for _, s := range r.Opening {
		if !s.OK {
			fmt.Fprintf(&b, "%s failed: %s\n", s.Name, s.Error)
			if s.Try != "" {
				fmt.Fprintf(&b, "  try: %s\n", s.Try)
			}
		}
	}
	d := r.Device
	fmt.Fprintf(&b, "%s: architecture %s, %s vector contexts, %s bytes of TCM, program %s, %s cycles a microsecond\n", r.Backend, unknown(d.Arch),
		unknown(fmt.Sprint(d.Contexts)), unknown(fmt.Sprint(d.TCM)), unknown(d.Source), unknown(fmt.Sprintf("%.6g", d.CyclesPerMicrosecond)))
	right := 0
	for _, o := range r.Operations {
		if o.Error == "" && o.Wrong == 0 {
			right++
		}
	}
	fmt.Fprintf(&b, "%d of %d operations computed the definition's bits\n", right, len(r.Operations))
	for _, f := range r.Verdict.Faults {
		fmt.Fprintf(&b, "  fault: %s\n", f)
	}
	for _, t := range r.Times {
		of := ""
		if t.Of > 0 {
			of = fmt.Sprintf(" of %d", t.Of)
		}
		fmt.Fprintf(&b, "%s%s: %.4g %s\n", t.Name, of, t.Value, t.Unit)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
