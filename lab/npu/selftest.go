package npu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/hexagon/selftest"
)

// mostReport bounds the file of a report.
const mostReport = 1 << 20

// ReadSelftest reads a report that a self-test has written.
func ReadSelftest(from io.Reader) (*selftest.Report, error) {
	data, err := io.ReadAll(io.LimitReader(from, mostReport+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostReport {
		return nil, fmt.Errorf("a report of more than %d bytes", mostReport)
	}
	var r selftest.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("not a report of lutra npu selftest: %w", err)
	}
	switch {
	case r.Kind != selftest.Kind:
		return nil, errors.New("not a report of lutra npu selftest")
	case r.Format != selftest.Format:
		return nil, fmt.Errorf("a report of format %d; this program reads format %d", r.Format, selftest.Format)
	}
	if err := checkReport(&r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Bounds of a report that somebody sends.
const (
	mostEntries  = 1000
	mostValue    = 1e9
	mostContexts = 64
	mostTCM      = 1 << 30
)

// checkReport refuses numbers that no device has.
func checkReport(r *selftest.Report) error {
	if n := max(len(r.Opening), len(r.Operations), len(r.Times), len(r.Coherence), len(r.Verdict.Faults)); n > mostEntries {
		return fmt.Errorf("a report with a list of %d entries; %d are the most", n, mostEntries)
	}
	if d := r.Device; d.Contexts < 0 || d.Contexts > mostContexts || d.TCM < 0 || d.TCM > mostTCM {
		return fmt.Errorf("a report of a device with %d vector contexts and %d bytes of TCM, which none has", d.Contexts, d.TCM)
	}
	for _, t := range r.Times {
		if !(t.Value >= 0 && t.Value <= mostValue) || t.Of < 0 || t.Of > mostTCM {
			return fmt.Errorf("a report with the time %q of %d: %v %s is out of range", t.Name, t.Of, t.Value, t.Unit)
		}
	}
	return nil
}
