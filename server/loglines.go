package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// Bounds of the lines that are kept, and of who reads them as they come.
const (
	mostLogLines  = 1000
	mostLogLine   = 16 << 10 // bytes; of a longer one only that is kept
	mostLogBytes  = 1 << 20
	mostFollowers = 8
)

// LogLines keeps the last lines of a log, as JSON, for GET /debug/logs. Lines of level trace,
// which may hold prompts, are left out. Its zero value keeps none yet.
type LogLines struct {
	mu        sync.Mutex
	lines     [][]byte
	first     int           // the number of lines[0], counted from the start of the log
	bytes     int           // of all lines
	more      chan struct{} // closes with the next line; nil: nobody waits
	followers int
}

// Write implements io.Writer, for zerolog.LevelWriter.
func (l *LogLines) Write(line []byte) (int, error) { return l.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel implements zerolog.LevelWriter.
func (l *LogLines) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level == zerolog.TraceLevel {
		return len(line), nil
	}
	kept := append(bytes.TrimRight(bytes.Clone(line), "\n"), '\n')
	if len(kept) > mostLogLine {
		kept = fmt.Appendf(nil, `{"level":"warn","message":"a line of %d bytes is left out"}`+"\n", len(kept))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, kept)
	for l.bytes += len(kept); len(l.lines) > mostLogLines || l.bytes > mostLogBytes; l.first++ {
		l.bytes -= len(l.lines[0])
		l.lines[0], l.lines = nil, l.lines[1:]
	}
	l.wakeLocked()
	return len(line), nil
}

// wake has those who wait for a line look around.
func (l *LogLines) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *LogLines) wakeLocked() {
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

// from returns the lines that are left from a number on, the next number, and what closes when
// there are more.
func (l *LogLines) from(number int) (lines [][]byte, next int, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	next = l.first + len(l.lines)
	at := min(max(number, l.first), next)
	return append(lines, l.lines[at-l.first:]...), next, l.more
}

// follow takes one of the places of those who follow the log.
func (l *LogLines) follow() (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers == mostFollowers {
		return nil, false
	}
	l.followers++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.followers--
	}, true
}

// logs answers with the last lines of the log, one JSON object each, and with follow=true with
// further ones until the client leaves or the server stops. A client that is too slow misses
// lines.
func (a *admin) logs(c *api.Call) error {
	tail, follow, err := logQuery(c.Request)
	if err != nil {
		return err
	}
	if follow {
		leave, ok := a.lines.follow()
		if !ok {
			return api.InvalidStatus(http.StatusTooManyRequests, "too_many_followers", "follow", fmt.Sprintf("%d clients follow the log already.", mostFollowers))
		}
		defer leave()
	}
	c.W.Header().Set("Content-Type", "application/x-ndjson")
	c.W.Header().Set("X-Accel-Buffering", "no")
	rc := http.NewResponseController(c.W)
	_, end, _ := a.lines.from(0)
	for next := end - tail; ; {
		stopping := a.models.draining.Load()
		lines, after, more := a.lines.from(next)
		next = after
		_ = rc.SetWriteDeadline(time.Now().Add(a.writeTimeout)) // recorders in tests know no deadlines
		if _, err := c.W.Write(bytes.Join(lines, nil)); err != nil {
			return nil // the client has left
		}
		if !follow || stopping || rc.Flush() != nil {
			return nil
		}
		select {
		case <-more:
		case <-c.Context().Done():
			return nil
		}
	}
}

// logQuery reads tail, how many of the last lines to begin with, and follow.
func logQuery(r *http.Request) (tail int, follow bool, err error) {
	tail = mostLogLines
	for name, values := range r.URL.Query() {
		switch name {
		case "tail":
			if tail, err = strconv.Atoi(values[0]); err != nil || tail < 0 {
				return 0, false, api.Invalid(jsonread.CodeValue, name, "Invalid 'tail': expected a number of lines, but got '%s'.", jsonread.Brief(values[0]))
			}
		case "follow":
			if follow, err = strconv.ParseBool(values[0]); err != nil {
				return 0, false, api.Invalid(jsonread.CodeValue, name, "Invalid 'follow': expected true or false, but got '%s'.", jsonread.Brief(values[0]))
			}
		default:
			return 0, false, api.Invalid(jsonread.CodeUnknown, name, "Unknown parameter: '%s'.", jsonread.Brief(name))
		}
	}
	return min(tail, mostLogLines), follow, nil
}
