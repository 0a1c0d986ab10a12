package output

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Meter shows how far something has come: as a bar on a terminal, as a line now and
// then elsewhere.
type Meter struct {
	W     io.Writer
	What  string           // is done, as in "loading falcon3-1b"
	Bytes bool             // amounts are of bytes
	Early bool             // elsewhere, the first line comes with the first amount
	Now   func() time.Time // nil: time.Now

	bar  *progressbar.ProgressBar
	said time.Time // when the last line was printed, or the first amount came
}

// meterEvery is the least time between two lines.
const meterEvery = 10 * time.Second

// Set shows that done of total is done.
func (m *Meter) Set(done, total int64) {
	if columns(m.W) > 0 {
		m.setBar(done, total)
		return
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	first := m.said.IsZero()
	switch at := now(); {
	case first && m.Early:
		fmt.Fprintf(m.W, "%s (%s)\n", m.What, m.amount(total))
		m.said = at
	case first:
		m.said = at
	case at.Sub(m.said) >= meterEvery && done < total:
		fmt.Fprintf(m.W, "%s: %s of %s\n", m.What, m.amount(done), m.amount(total))
		m.said = at
	}
}

func (m *Meter) setBar(done, total int64) {
	if m.bar == nil {
		if m.Bytes {
			m.bar = ByteProgress(m.W, total, m.What)
		} else {
			m.bar = bar(m.W, int(total), m.What)
		}
	}
	_ = m.bar.Set64(done) // the bar is decoration
}

func (m *Meter) amount(n int64) string {
	if m.Bytes {
		return Bytes(n)
	}
	return fmt.Sprint(n)
}

// Count returns what shows, each time that it is called, that one more of total is done, of which done
// are. It may be called by several at once.
func (m *Meter) Count(done, total int) func() {
	var mu sync.Mutex
	m.Set(int64(done), int64(total))
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		m.Set(int64(done), int64(total))
	}
}

// End takes the bar away, so that other text can follow.
func (m *Meter) End() {
	if m.bar != nil {
		_ = m.bar.Finish() // likewise
		m.bar = nil
	}
}
