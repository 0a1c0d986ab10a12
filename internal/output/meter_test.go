package output

import (
	"bytes"
	"testing"
	"time"
)

func TestAMeterPrintsALineNowAndThenOffATerminal(t *testing.T) {
	for _, c := range []struct {
		meter Meter
		want  string
	}{
		{Meter{What: "loading big", Bytes: true, Early: true}, "loading big (100.0 MiB)\nloading big: 40.0 MiB of 100.0 MiB\nloading big: 80.0 MiB of 100.0 MiB\n"},
		{Meter{What: "writing big", Bytes: true}, "writing big: 40.0 MiB of 100.0 MiB\nwriting big: 80.0 MiB of 100.0 MiB\n"},
		{Meter{What: "answers"}, "answers: 41943040 of 104857600\nanswers: 83886080 of 104857600\n"},
	} {
		var out bytes.Buffer
		clock := time.Unix(0, 0)
		c.meter.W, c.meter.Now = &out, func() time.Time { return clock }
		for i := range int64(101) { // four megabytes a second
			c.meter.Set(i<<20, 100<<20)
			clock = clock.Add(time.Second / 4)
		}
		c.meter.End()
		if out.String() != c.want {
			t.Errorf("%+v printed %q, want %q", c.meter, out.String(), c.want)
		}
	}
}
