package jobs

import (
	"bufio"
	stdbytes "bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/parallel"
)

// Times of Run.
const (
	openAgain  = 5 * time.Second  // a folder that cannot be opened
	writeAgain = 10 * time.Second // what could not be written
	leastPause = time.Second      // of a batch for whose lines the server has no room
	mostPause  = 5 * time.Minute
	sweepEvery = time.Minute // what is kept no longer
)

// mostRefused bounds how often in a row a batch's lines meet status 503; then it is their answer.
const mostRefused = 16

// mostOpen bounds the batches that have their files open.
const mostOpen = 16

// Run answers lines by handler until ctx ends. Those under way are then left, and done when Run is called again.
func (s *Store) Run(ctx context.Context, handler http.Handler) {
	if s.opt.Path == "" {
		return
	}
	unlock, err := s.load()
	for said := ""; err != nil; unlock, err = s.load() {
		if text := errtext.Text(err); text != said {
			s.log.Error().Str("folder", s.opt.Path).Str("error", text).Msg("there are no jobs until their folder can be opened")
			said = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(openAgain):
		}
	}
	defer unlock()
	r := runner{Store: s, handler: handler, slots: make(chan struct{}, s.opt.AtOnce)}
	r.run(ctx)
	r.lines.Wait()
	s.close()
}

// close closes the folder.
func (s *Store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	for _, b := range s.batches {
		if b.run != nil {
			b.run.close()
			b.run = nil
		}
	}
}

// runner has lines answered. It alone begins them; each ends in a goroutine of its own.
type runner struct {
	*Store
	handler http.Handler
	slots   chan struct{} // taken by lines under way
	lines   parallel.Group
}

// run begins lines until ctx ends.
func (s *runner) run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	s.sweep(time.Now())
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		do, wait := s.next(ctx, time.Now())
		if do != nil {
			s.lines.Go(func() {
				defer func() { <-s.slots; s.look() }()
				do()
			})
			continue
		}
		<-s.slots
		later := time.NewTimer(wait)
		select {
		case <-s.wake:
		case <-later.C:
		case <-sweep.C:
			s.sweep(time.Now())
		case <-ctx.Done():
		}
		later.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// next returns a line to answer or a batch to end, or else after how long there may be one. The key goes first whose turn is
// the longest ago, with its oldest batch.
func (s *runner) next(ctx context.Context, at time.Time) (do func(), wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = sweepEvery
	later := func(t time.Time) { wait = max(time.Millisecond, min(wait, t.Sub(at))) }
	going, oldest, open := s.going(at)
	for _, b := range going {
		stopped := b.stopped(at)
		if !stopped {
			later(moment(b.Deadline))
		}
		switch {
		case b.pause.After(at):
			later(b.pause)
			continue
		case !stopped && oldest[b.Owner] != b, b.run == nil && !stopped && open >= mostOpen:
			continue
		}
		if b.run == nil {
			if err := s.begin(ctx, b); err != nil {
				s.trouble(b, err)
				continue
			}
			open++
			stopped = b.stopped(at)
		}
		if stopped {
			if b.unfinished() {
				b.run.cancel()
			}
			if b.run.under == 0 {
				b.ending = true
				return func() { s.end(b) }, 0
			}
			continue
		}
		if i, ok := b.run.take(); ok {
			b.run.under++
			s.turns++
			for _, other := range going {
				if other.Owner == b.Owner {
					other.turn = s.turns
				}
			}
			return func() { s.answer(b, i) }, 0
		}
	}
	return nil, wait
}

// going returns the batches that have not ended, in turn, the oldest of each key that has lines to begin, and how many have
// their files open. Locked.
func (s *runner) going(at time.Time) (going []*batch, oldest map[string]*batch, open int) {
	oldest = map[string]*batch{}
	for _, b := range s.batches {
		if b.run != nil {
			open++
		}
		if b.ended() || b.ending {
			continue
		}
		going = append(going, b)
		if o := oldest[b.Owner]; !b.stopped(at) && (b.run == nil || b.run.waiting()) && (o == nil || b.Created < o.Created) {
			oldest[b.Owner] = b
		}
	}
	slices.SortFunc(going, func(a, b *batch) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.Created, b.Created)) })
	return going, oldest, open
}

// trouble has a batch wait for a folder that takes nothing. Locked.
func (s *runner) trouble(b *batch, err error) {
	b.pause = time.Now().Add(writeAgain)
	s.log.Warn().Str("batch", b.ID).Str("error", errtext.Text(err)).Msg("a batch waits: its files cannot be read or written")
}

// waiting tells whether there are lines to begin.
func (r *running) waiting() bool {
	for r.next < len(r.places) && r.places[r.next].n > 0 {
		r.next++
	}
	return len(r.again) > 0 || r.next < len(r.places)
}

// take returns a line to begin.
func (r *running) take() (i int, ok bool) {
	switch n := len(r.again); {
	case !r.waiting():
		return 0, false
	case n > 0:
		i, r.again = r.again[n-1], r.again[:n-1]
		return i, true
	}
	r.next++
	return r.next - 1, true
}

// lineID returns the id of a line: the same however often it is begun.
func lineID(batch string, i int) string {
	kind, rest, _ := strings.Cut(batch, "_")
	return kind + "_req_" + rest + "_" + strconv.Itoa(i)
}

// answer has line i of a batch answered and notes the answer.
func (s *runner) answer(b *batch, i int) {
	run := b.run // it stays as long as a line is under way
	var text []byte
	kind, again := byte(kindFailed), time.Duration(0)
	err := parallel.Try(func() error {
		id := lineID(run.of.ID, i)
		q, why := run.line(i)
		if why != nil {
			text = run.form.undone(&q, id, why)
			return nil
		}
		w := run.ask(s.handler, &q, id)
		if run.ctx.Err() != nil { // whatever it was, it may have been cut
			return run.ctx.Err()
		}
		if again = w.again(); again > 0 && s.waits(b, w.status) {
			return nil
		}
		again = 0
		reply := reply{id, w.Header().Get("X-Request-Id"), w.status, nil}
		var body stdbytes.Buffer
		if w.full || json.Compact(&body, w.body.Bytes()) != nil {
			text = run.form.undone(&q, id, &faultLarge)
			return nil
		}
		reply.body = body.Bytes()
		text, kind = run.form.answer(&q, &reply)
		return nil
	})
	var p place
	if err == nil && again == 0 {
		p, err = s.note(b, run, i, kind, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run.under--
	switch {
	case err == nil && again == 0:
		run.places[i], b.refused = p, 0
		b.countLine(p)
		outcome := countDone
		if kind != kindDone {
			outcome = countFailed
		}
		s.counted[outcome].Add(1)
	case again > 0:
		run.again = append(run.again, i)
		b.pause = time.Now().Add(min(max(again, leastPause), mostPause))
	default:
		run.again = append(run.again, i)
		if run.ctx.Err() == nil {
			s.trouble(b, err)
		}
	}
}

// waits tells whether a line that the server cannot answer now waits: always where the server is busy, and for a while where
// a model or the like has failed.
func (s *runner) waits(b *batch, status int) bool {
	if status == http.StatusTooManyRequests {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.refused++
	return b.refused <= mostRefused
}

// note writes an answer into the journal, where the folder has room for it and for its copy in the output.
func (s *runner) note(b *batch, run *running, i int, kind byte, text []byte) (place, error) {
	room := 2*int64(len(text)+64) - asideOf
	s.mu.Lock()
	err := s.take(room)
	s.mu.Unlock()
	if err != nil {
		return place{}, err
	}
	p, err := run.journal.append(i, kind, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.used -= room
		return place{}, err
	}
	b.aside += room
	return p, nil
}

// line reads line i of the batch, or says why it has no answer.
func (r *running) line(i int) (q request, why *Fault) {
	if i >= len(r.lines) {
		return q, &faultDamaged
	}
	text, ok := r.lines[i].read(r.input)
	if !ok {
		return q, &faultDamaged
	}
	q, err := r.form.read(trim(text), &r.of)
	if err != nil {
		return q, &Fault{Code: "invalid_request", Message: errtext.Text(err)}
	}
	return q, nil
}

// ask sends the line of an id to the server.
func (r *running) ask(h http.Handler, q *request, id string) *answerWriter {
	w := &answerWriter{header: http.Header{}}
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, "http://localhost"+q.endpoint, stdbytes.NewReader(q.body))
	if err != nil {
		panic(err) // the endpoint is one of ours
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	req.RemoteAddr = r.of.ID
	r.form.headers(req.Header)
	h.ServeHTTP(w, req)
	return w
}

// answerWriter takes an answer of at most mostAnswer bytes.
type answerWriter struct {
	header http.Header
	status int
	body   stdbytes.Buffer
	full   bool
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.full = w.full || w.body.Len()+len(p) > mostAnswer; w.full {
		return 0, errLarge
	}
	return w.body.Write(p)
}

// again returns after how long the request is to be sent again; 0: its answer is final.
func (w *answerWriter) again() time.Duration {
	if w.status != http.StatusTooManyRequests && w.status != http.StatusServiceUnavailable {
		return 0
	}
	seconds, _ := strconv.Atoi(w.header.Get("Retry-After"))
	return min(max(leastPause, time.Duration(seconds)*time.Second), mostPause)
}

// end puts a batch's answers together. Killed meanwhile, it is done again, with the same files.
func (s *runner) end(b *batch) {
	err := parallel.Try(func() error { return s.finish(b) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.ending = false; err != nil {
		s.trouble(b, err)
	}
}

// errAgain says that a batch has lines to do again.
var errAgain = errors.New("jobs: answers in the journal are damaged")

func (s *runner) finish(b *batch) error {
	s.mu.Lock()
	r, run, at := b.record, b.run, time.Now()
	r.Finalizing = seconds(at)
	switch {
	case r.Status == StatusCancelling:
		r.Status = StatusCancelled
	case b.unfinished():
		r.Status = StatusExpired
	default:
		r.Status = StatusCompleted
	}
	s.mu.Unlock()
	if r.Status == StatusCompleted && !s.sound(b) {
		return errAgain
	}
	for i, o := range run.form.files() {
		f := &File{ID: derived(r.ID, o.suffix), Owner: r.Owner, Name: r.ID + "_" + o.suffix + ".jsonl", Purpose: purposeOutput}
		if o.hidden {
			f.Batch = r.ID
		}
		var err error
		if f.Bytes, err = s.writeAnswers(&r, run, &o, s.path(fileFolder, f.ID)); err != nil {
			return err
		}
		if f.Bytes == 0 {
			os.Remove(s.path(fileFolder, f.ID))
			s.mu.Lock()
			s.dropFile(f.ID)
			s.mu.Unlock()
			continue
		}
		if err := s.keepFile(f, time.Duration(r.Keep)*time.Second); err != nil {
			return err
		}
		if i == 0 {
			r.Output = f.ID
		} else {
			r.Failures = f.ID
		}
	}
	r.Done, r.Failed, r.Undone = count(run, kindDone), count(run, kindFailed), count(run, 0)
	r.Ended = now()
	if err := writeRecord(s.path(batchFolder, r.ID+recordEnd), &r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run.close()
	s.forget(b)
	b.record, b.run = r, nil
	s.used -= b.aside + int64(r.Lines)*lineSize
	s.log.Info().Str("batch", r.ID).Str("status", string(r.Status)).Int("lines", r.Lines).Int("failed", r.Failed).Msg("a batch has ended")
	return nil
}

// count returns the number of lines whose answer is of a kind.
func count(run *running, kind byte) (n int) {
	for _, p := range run.places {
		if p.kind == kind {
			n++
		}
	}
	return n
}

// sound tells whether all answers can be read; those that cannot are to be done again.
func (s *runner) sound(b *batch) bool {
	ok := true
	for i, p := range b.run.places {
		if _, good := b.run.journal.answer(i, p); good {
			continue
		}
		ok = false
		s.mu.Lock()
		b.run.places[i] = place{}
		b.run.again = append(b.run.again, i)
		b.count(b.run.places)
		s.mu.Unlock()
	}
	return ok
}

// writeAnswers writes the answers of a file's kinds in the order of the input. It returns the file's bytes.
func (s *runner) writeAnswers(r *record, run *running, o *outputFile, path string) (size int64, err error) {
	why := &faultExpired
	if r.Status == StatusCancelled {
		why = &faultCancelled
	}
	err = replace(path, func(w *os.File) (err error) {
		out := bufio.NewWriterSize(w, 64<<10)
		for i, p := range run.places {
			var line []byte
			good := p.n > 0
			if good {
				line, good = run.journal.answer(i, p)
			}
			kind := p.kind
			if !good {
				q, fault := run.line(i)
				if kind = 0; fault == nil {
					fault = why
				}
				line = run.form.undone(&q, lineID(r.ID, i), fault)
			}
			if !slices.Contains([]byte(o.kinds), kind) {
				continue
			}
			if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		size, err = w.Seek(0, io.SeekCurrent)
		return err
	})
	return size, err
}

// sweep removes what is kept no longer.
func (s *runner) sweep(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.files {
		if f.Batch == "" && f.Expires < seconds(at) && !s.inUse(id) {
			s.dropFile(id)
		}
	}
	for _, b := range s.batches {
		if b.ended() && b.Ended+int64(s.opt.Keep/time.Second) < seconds(at) {
			s.dropBatch(b)
		}
	}
}
