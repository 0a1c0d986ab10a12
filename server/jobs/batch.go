package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher"
)

// Status says where a batch stands, in OpenAI's words.
type Status string

// The statuses of a batch. Those after finalizing are of batches that have ended.
const (
	StatusFailed     Status = "failed" // its input is wrong: no line was begun
	StatusInProgress Status = "in_progress"
	StatusFinalizing Status = "finalizing"
	StatusCompleted  Status = "completed"
	StatusExpired    Status = "expired"
	StatusCancelling Status = "cancelling"
	StatusCancelled  Status = "cancelled"
)

// Statuses returns all.
func Statuses() []Status {
	return []Status{StatusFailed, StatusInProgress, StatusFinalizing, StatusCompleted, StatusExpired, StatusCancelling, StatusCancelled}
}

// Fault tells of a mistake in a line of an input.
type Fault struct {
	Code, Message, Param string
	Line                 int // from 1; 0: the input as a whole
}

// mostFaults bounds those that a batch tells of.
const mostFaults = 100

// record describes a batch on the disk. Times are Unix times in seconds; 0: not yet.
type record struct {
	ID       string
	Owner    string // the key whose it is
	Form     string // of its lines and answers: formOpenAI or formAnthropic
	Endpoint string // of lines that name none
	Input    string // the file of its lines
	Window   string // completion_window, as it was asked for
	Metadata map[string]string
	Lines    int
	Status   Status
	Faults   []Fault
	Keep     int64 // seconds that its answers are kept

	Created    int64 // in nanoseconds
	Deadline   int64
	Cancelling int64
	Finalizing int64
	Ended      int64

	Output, Failures string // files of answers; empty: none, or not yet
	Done, Failed     int    // lines, of a batch that has ended
	Undone           int
}

// ended tells whether nothing is done for the batch any more.
func (r *record) ended() bool {
	return r.Status == StatusFailed || r.Status == StatusCompleted || r.Status == StatusExpired || r.Status == StatusCancelled
}

// batch is a batch, and what is done for it while it has not ended. The store's mu guards it.
type batch struct {
	record
	done, failed int   // lines that have an answer
	aside        int64 // bytes of the folder for its answers: in the journal, and as much for their copies in files
	turn         int64 // when it last had one

	run     *running
	pause   time.Time // nothing is begun before
	refused int       // lines in a row that the server had no room for
	ending  bool      // its answers are being put together
}

// running is a batch that has its files open.
type running struct {
	of      record // as it was when the files were opened
	form    form
	ctx     context.Context // of its lines; it ends when they shall
	cancel  context.CancelFunc
	input   *os.File // nil: it is gone
	lines   []line   // none where the input is gone
	places  []place  // of answers
	journal *journal
	next    int   // the first line that was never begun
	again   []int // lines that are to be begun again
	under   int   // lines under way
}

// close closes the batch's files.
func (r *running) close() {
	r.cancel()
	if r.input != nil {
		r.input.Close()
	}
	r.journal.close()
}

// asideOf returns how many bytes are set aside for a line that has no answer: for one that says why.
const asideOf = 1 << 10

// unfinished tells whether the batch has lines without answers.
func (b *batch) unfinished() bool { return b.done+b.failed < b.Lines }

// stopped tells whether no further line of the batch is to be begun.
func (b *batch) stopped(at time.Time) bool {
	return b.Status == StatusCancelling || seconds(at) >= b.Deadline || !b.unfinished()
}

// scanBatches reads the records of batches, and how far they are.
func (s *Store) scanBatches() (batches map[string]*batch, used int64, err error) {
	batches = map[string]*batch{}
	_, err = s.scan(batchFolder, func(id string) error {
		b := &batch{}
		if err := readRecord(s.path(batchFolder, id+recordEnd), &b.record); err != nil {
			return err
		}
		if b.ID != id || formOf(b.Form) == nil {
			return errDamaged
		}
		if batches[id] = b; b.ended() {
			s.forget(b)
			return nil
		}
		j, places, err := openJournal(s.path(batchFolder, id+journalEnd), b.Lines)
		if err != nil {
			return err
		}
		defer j.close()
		b.count(places)
		b.aside = 2*j.size() + int64(b.Lines-b.done-b.failed)*asideOf
		used += b.aside + int64(b.Lines)*lineSize
		return nil
	})
	return batches, used, err
}

// count counts the lines that have answers.
func (b *batch) count(places []place) {
	b.done, b.failed = 0, 0
	for _, p := range places {
		b.countLine(p)
	}
}

// countLine counts a line where it has its answer.
func (b *batch) countLine(p place) {
	switch {
	case p.n == 0:
	case p.kind == kindDone:
		b.done++
	default:
		b.failed++
	}
}

// forget removes what a batch that has ended needs no more.
func (s *Store) forget(b *batch) {
	os.Remove(s.path(batchFolder, b.ID+journalEnd))
	os.Remove(s.path(batchFolder, b.ID+linesEnd))
}

// room returns an error where an owner may have no further batch. Locked.
func (s *Store) room(owner string) error {
	if err := s.ready(); err != nil {
		return err
	}
	if len(s.batches) >= s.opt.Batches {
		return errMany
	}
	n := 0
	for _, b := range s.batches {
		if b.Owner == owner && !b.ended() {
			n++
		}
	}
	if n >= s.opt.KeyBatches {
		return errKeyMany
	}
	return nil
}

// addBatch keeps a batch of lines that stand in its input, and has it done. One with faults has failed.
func (s *Store) addBatch(r record, lines []line, window time.Duration) (*record, error) {
	at := time.Now()
	r.Created, r.Deadline, r.Lines, r.Status = order(at), seconds(at.Add(window)), len(lines), StatusInProgress
	b := &batch{aside: int64(len(lines)) * asideOf}
	if len(r.Faults) > 0 {
		r.Status, r.Ended, r.Lines, b.aside = StatusFailed, seconds(at), 0, 0
	}
	b.record = r
	s.mu.Lock()
	err := s.room(r.Owner)
	if err == nil {
		err = s.take(b.aside)
	}
	if err == nil {
		s.batches[r.ID] = b // its place is taken
		b.ending = true     // and it is not begun
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !b.ended() {
		err = writeLines(s.path(batchFolder, r.ID+linesEnd), lines)
	}
	if err == nil {
		err = writeRecord(s.path(batchFolder, r.ID+recordEnd), &b.record)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.ending = false; err != nil {
		delete(s.batches, r.ID)
		s.used -= b.aside
		s.forget(b)
		return nil, err
	}
	if !b.ended() {
		s.used += int64(len(lines)) * lineSize
	}
	s.look()
	return b.state(), nil
}

// state returns the batch's record as it is now. Locked.
func (b *batch) state() *record {
	r := b.record
	if !r.ended() {
		r.Done, r.Failed = b.done, b.failed
	}
	return &r
}

// find returns a batch of an owner and of a form. Locked.
func (s *Store) find(owner, form, id string) (*batch, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if b := s.batches[id]; b != nil && b.Owner == owner && b.Form == form {
		return b, nil
	}
	return nil, errMissing
}

// batch returns where a batch stands.
func (s *Store) batch(owner, form, id string) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(owner, form, id)
	if err != nil {
		return nil, err
	}
	return b.state(), nil
}

// listBatches returns the batches of an owner and of a form, the newest first.
func (s *Store) listBatches(owner, form string) ([]*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*record
	for _, b := range s.batches {
		if b.Owner == owner && b.Form == form {
			list = append(list, b.state())
		}
	}
	slices.SortFunc(list, func(a, b *record) int { return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID)) })
	return list, s.ready()
}

// cancelBatch ends a batch with the answers that it has. Lines under way end with the engine's step.
func (s *Store) cancelBatch(owner, form, id string) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(owner, form, id)
	switch {
	case err != nil:
		return nil, err
	case b.ended():
		return b.state(), errHasEnded
	case b.Status == StatusCancelling || b.ending:
		return b.state(), nil
	}
	r := b.record
	r.Status, r.Cancelling = StatusCancelling, now()
	if err := writeRecord(s.path(batchFolder, id+recordEnd), &r); err != nil {
		return nil, err
	}
	b.record, b.pause = r, time.Time{}
	if b.run != nil {
		b.run.cancel()
	}
	s.look()
	return b.state(), nil
}

// deleteBatch deletes a batch that has ended, with its input and its answers.
func (s *Store) deleteBatch(owner, form, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(owner, form, id)
	switch {
	case err != nil:
		return err
	case !b.ended():
		return errGoing
	}
	s.dropBatch(b)
	return nil
}

// dropBatch deletes a batch that has ended, and files that only it has to do with. Locked.
func (s *Store) dropBatch(b *batch) {
	delete(s.batches, b.ID)
	os.Remove(s.path(batchFolder, b.ID+recordEnd))
	s.forget(b)
	for _, id := range []string{b.Input, b.Output, b.Failures} {
		if f := s.files[id]; f != nil && f.Batch == b.ID {
			s.dropFile(id)
		}
	}
}

// begin opens the files of a batch. Locked.
func (s *runner) begin(ctx context.Context, b *batch) error {
	r := &running{of: b.record, form: formOf(b.Form)}
	var err error
	if r.journal, r.places, err = openJournal(s.path(batchFolder, b.ID+journalEnd), b.Lines); err != nil {
		return err
	}
	r.journal.write = s.write
	if r.input, err = os.Open(s.path(fileFolder, b.Input)); err == nil {
		r.lines, err = readLines(s.path(batchFolder, b.ID+linesEnd), r.input, b.Lines)
	}
	if err != nil {
		s.log.Warn().Str("batch", b.ID).Err(err).Msg("a batch's input cannot be read; lines without answers fail")
		r.lines = nil
	}
	r.ctx, r.cancel = context.WithCancel(batcher.WithBackground(context.WithValue(ctx, ownerKey{}, b.Owner)))
	b.count(r.places)
	b.run = r
	return nil
}

// derived returns the id of a file that is made of a batch: the same each time.
func derived(batch, what string) string {
	sum := sha256.Sum256([]byte(batch + " " + what))
	return filePrefix + hex.EncodeToString(sum[:idLen/2])
}

// ownerKey is the key of a context that a line's request has.
type ownerKey struct{}

// OwnerOf returns the owner of the key (admission.Key) whose request a line of a batch is, of ctx; it is false for all other
// requests.
func OwnerOf(ctx context.Context) (owner string, ok bool) {
	hash, ok := ctx.Value(ownerKey{}).(string)
	if !ok {
		return "", false
	}
	raw, _ := hex.DecodeString(hash)
	return string(raw), true
}
