package npu

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// phone is the report of a phone that is twice as slow as 8 Gen 3 in the constants' view.
func phone() *selftest.Report {
	chip, _ := soc.Named("8gen3")
	chip.DMA.Value = 30
	vector, _ := layerSeconds(&chip)
	r := &selftest.Report{Kind: selftest.Kind, Format: selftest.Format, Backend: "hexagon", Chip: true, Verdict: selftest.Verdict{OK: true}}
	r.Device.Contexts, r.Device.TCM = 4, 8<<20
	r.Times = []selftest.Time{{Name: selftest.DMA, Of: 4096, Value: 5}, {Name: selftest.DMA, Of: 1 << 20, Value: 30}, {Name: selftest.TileUnit, Of: 32, Value: 6000},
		{Name: selftest.BitNetLayer, Value: 1e3 * 10 * vector}, {Name: selftest.Gathers, Value: 100}}
	return r
}

func TestAPlanTakesItsConstantsFromASelftest(t *testing.T) {
	x, _ := Shape("bitnet-2b")
	o := DefaultOptions()
	before, err := NewPlan(x, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Measured = phone()
	after, err := NewPlan(x, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range after.Chips {
		faster := before.Chips[i].Decode[0].TokensPerSecond / c.Decode[0].TokensPerSecond
		if c.ID != o.Chip {
			if faster != 1 {
				t.Errorf("%s is planned %v times as slow by a report of %s", c.ID, faster, o.Chip)
			}
			continue
		}
		if faster < 2 {
			t.Errorf("half the bandwidth and a tenth of the clock make %s only %v times as slow", c.ID, faster)
		}
		want := map[string]float64{"DMA": 30, "tile unit": 6000, "clock": 0.122, "vgather": 12.2}
		for _, n := range c.Numbers {
			if v, ok := want[n.Name]; ok && (n.Source != soc.Measured || n.Value < 0.99*v || n.Value > 1.01*v) {
				t.Errorf("%s is %v of source %s, want about %v", n.Name, n.Value, n.Source, v)
			}
		}
	}
	var text strings.Builder
	if err := after.Print(&text); err != nil || !strings.Contains(text.String(), "measured on a device by lutra npu selftest") {
		t.Errorf("%v, %s", err, text.String())
	}
	o.Measured.Chip, o.Measured.Backend = false, "hexagon-go"
	if after, err = NewPlan(x, o); err != nil || !strings.Contains(after.Options.measuredOn(), "hexagon-go, which say nothing about a chip") {
		t.Errorf("%v, %s", err, after.Options.measuredOn())
	}
}

func TestAReportOfADeviceThatFailedIsNoPlansConstants(t *testing.T) {
	x, _ := Shape("bitnet-2b")
	for _, spoil := range []func(*selftest.Report){
		func(r *selftest.Report) { r.Verdict.OK = false }, func(r *selftest.Report) { r.Running = "times" }, func(r *selftest.Report) { r.Times = nil },
	} {
		o := DefaultOptions()
		o.Measured = phone()
		spoil(o.Measured)
		if _, err := NewPlan(x, o); err == nil {
			t.Errorf("%+v is taken", o.Measured)
		}
	}
}
