package meter

import "testing"

func TestEveryKernelHasAName(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, c := range new(Meter).Costs() {
		if seen[c.Kind.String()] {
			t.Errorf("kernel %d is named %q", c.Kind, c.Kind)
		}
		seen[c.Kind.String()] = true
	}
}

func BenchmarkMeter(b *testing.B) {
	var m Meter
	for _, on := range []bool{false, true} {
		if on {
			m.Enable()
		}
		b.Run(map[bool]string{false: "off", true: "on"}[on], func(b *testing.B) {
			for b.Loop() {
				m.Stop(Rows, m.Start(), 1, 0, 0)
			}
		})
	}
}
