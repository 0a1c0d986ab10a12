package kvevents

import "slices"

// What is kept for replays at most: vLLM's number of batches, and a bound of their bytes.
const (
	mostKept      = 10_000
	mostKeptBytes = 64 << 20
)

// entry is a batch that has been published.
type entry struct {
	seq     uint64
	topic   []byte
	payload []byte
}

// log numbers batches and keeps the latest.
type log struct {
	next    uint64
	entries []entry
	bytes   int
}

// add gives a batch its number. The oldest ones give way.
func (l *log) add(topic, payload []byte) entry {
	e := entry{l.next, topic, payload}
	l.next++
	l.entries = append(l.entries, e)
	for l.bytes += len(payload); len(l.entries) > mostKept || l.bytes > mostKeptBytes && len(l.entries) > 1; {
		l.bytes -= len(l.entries[0].payload)
		l.entries[0] = entry{}
		l.entries = l.entries[1:]
	}
	return e
}

// since returns the batches from number seq on that are still there.
func (l *log) since(seq uint64) []entry {
	for i, e := range l.entries {
		if e.seq >= seq {
			return slices.Clone(l.entries[i:])
		}
	}
	return nil
}
