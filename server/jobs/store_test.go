package jobs

import (
	"bufio"
	stdbytes "bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// childFolder has the test's program answer the batches of a folder until it is killed, and childLines about how many lines
// of them. Each puts out a dot.
const childFolder, childLines = "LUTRA_JOBS_CHILD", "LUTRA_JOBS_CHILD_LINES"

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		var out sync.Mutex
		var begun atomic.Int64
		most, _ := strconv.ParseInt(os.Getenv(childLines), 10, 64)
		New(options(folder), zerolog.Nop()).Run(context.Background(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begun.Add(1) > most+8 { // the killer may have no processor for as long as all lines take
				select {}
			}
			echo(w, r)
			out.Lock()
			defer out.Unlock()
			fmt.Print(".")
		}))
		return
	}
	os.Exit(m.Run())
}

func options(folder string) Options {
	o := DefaultOptions()
	o.Path = folder
	return o
}

// echo answers with the body; one whose field n is a multiple of 10 is a bad request.
func echo(w http.ResponseWriter, r *http.Request) {
	var body struct{ N int }
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &body)
	w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
	if body.N%10 == 0 {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(text)
}

// input returns n lines of a batch of chats.
func input(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"line-%d","method":"POST","url":"/v1/chat/completions","body":{"n":%d}}`+"\n", i, i)
	}
	return b.String()
}

const someone = "00ff"

// shop is a store of a folder, with batches.
type shop struct {
	*Store
	t     *testing.T
	ended chan string // ids of batches that have ended
	stop  func()
}

// Write takes the log.
func (s *shop) Write(line []byte) (int, error) {
	var said struct{ Batch, Message string }
	if json.Unmarshal(line, &said) == nil && said.Message == "a batch has ended" {
		s.ended <- said.Batch
	}
	return len(line), nil
}

// openShop makes a store of a folder and runs it, if handler is not nil.
func openShop(t *testing.T, o Options, handler http.HandlerFunc) *shop {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, ended: make(chan string, 1000)}
	s.Store = New(o, zerolog.New(s))
	s.run(handler)
	t.Cleanup(func() { s.stop() })
	return s
}

// run runs the store, or opens it alone.
func (s *shop) run(handler http.HandlerFunc) {
	s.t.Helper()
	if handler == nil {
		unlock, err := s.load()
		if err != nil {
			s.t.Fatal(err)
		}
		s.stop = sync.OnceFunc(func() { s.close(); unlock() })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, handler)
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
}

// put adds a file.
func (s *shop) put(text string) *File {
	s.t.Helper()
	f := &File{Owner: someone, Name: "in.jsonl", Purpose: purposeInput}
	if err := s.addFile(context.Background(), f, strings.NewReader(text), 0); err != nil {
		s.t.Fatal(err)
	}
	return f
}

// begin adds a batch of a file's lines.
func (s *shop) begin(text string) *record {
	s.t.Helper()
	for { // Run opens the folder when it gets there
		s.mu.Lock()
		err := s.ready()
		s.mu.Unlock()
		if err == nil {
			break
		}
	}
	f := s.put(text)
	r := record{ID: newID(batchPrefix), Owner: someone, Form: formOpenAI, Endpoint: Endpoints[0], Input: f.ID}
	lines, err := s.check(context.Background(), &r, f)
	if err != nil {
		s.t.Fatal(err)
	}
	kept, err := s.addBatch(r, lines, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return kept
}

// end waits for a batch and returns it with the answers of its files, by custom_id.
func (s *shop) end(id string) (*record, map[string]openaiLine) {
	s.t.Helper()
	for other := range s.ended {
		if other == id {
			break
		}
	}
	r, err := s.batch(someone, formOpenAI, id)
	if err != nil {
		s.t.Fatal(err)
	}
	answers := map[string]openaiLine{}
	for _, file := range []string{r.Output, r.Failures} {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(s.path(fileFolder, file))
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var a openaiLine
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				s.t.Fatalf("the answer %q: %v", line, err)
			}
			if _, twice := answers[a.CustomID]; twice {
				s.t.Fatalf("%s is answered twice", a.CustomID)
			}
			answers[a.CustomID] = a
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used := int64(0)
	for _, f := range s.files {
		used += f.Bytes
	}
	if s.used != used {
		s.t.Errorf("the store counts %d bytes, and its files have %d", s.used, used)
	}
	return r, answers
}

// wantAll checks that all lines have the answers of echo.
func wantAll(t *testing.T, n int, r *record, answers map[string]openaiLine) {
	t.Helper()
	if r.Status != StatusCompleted || len(answers) != n || r.Failed != (n+9)/10 || r.Done != n-r.Failed {
		t.Fatalf("%d answers of %d lines, and the batch is %+v", len(answers), n, r)
	}
	for i := range n {
		a := answers[fmt.Sprintf("line-%d", i)]
		status := http.StatusOK
		if i%10 == 0 {
			status = http.StatusBadRequest
		}
		if a.Response == nil || a.Response.StatusCode != status || string(a.Response.Body) != fmt.Sprintf(`{"n":%d}`, i) || a.Response.RequestID != a.ID {
			t.Fatalf("line %d is answered by %+v", i, a)
		}
	}
}

func TestABatchWhoseServerIsKilledFiveTimesHasEachLineOnce(t *testing.T) {
	n := sweep.Of(t, 300, 10_000)
	folder := t.TempDir()
	s := openShop(t, options(folder), nil)
	id := s.begin(input(n)).ID
	s.stop()
	for kill := range 5 {
		lines := n/8 + 7*kill
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childFolder+"="+folder, childLines+"="+strconv.Itoa(lines))
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, lines)); err != nil { // so many have been answered
			t.Error(err)
		}
		if err := child.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
	}
	var again atomic.Int64
	s = openShop(t, options(folder), func(w http.ResponseWriter, r *http.Request) {
		again.Add(1)
		echo(w, r)
	})
	r, answers := s.end(id)
	wantAll(t, n, r, answers)
	if most := int64(n - 5*(n/8) + 5*8); again.Load() > most || again.Load() == 0 {
		t.Errorf("the last server has answered %d of %d lines", again.Load(), n)
	}
}

func TestWhatIsDamagedCostsItsLineAlone(t *testing.T) {
	const n = 40
	folder := t.TempDir()
	begun := make(chan struct{}, n)
	hold := make(chan struct{})
	s := openShop(t, options(folder), func(w http.ResponseWriter, r *http.Request) {
		if begun <- struct{}{}; len(begun) > n/2 { // the rest stays
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			return
		}
		echo(w, r)
	})
	id := s.begin(input(n)).ID
	for len(begun) < n/2+s.opt.AtOnce {
		runtime.Gosched()
	}
	s.stop()
	journal := filepath.Join(folder, batchFolder, id+journalEnd)
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	records := stdbytes.Count(whole, []byte(" {"))
	if records < n/2 {
		t.Fatalf("the journal has %d records", records)
	}
	copied := filepath.Join(t.TempDir(), "journal")
	step := sweep.Of(t, 7, 1)
	for at := 0; at < len(whole); at += step {
		bad := slices.Clone(whole)
		bad[at] ^= 0x15
		if left := readAll(t, copied, bad, n); left < records-1 {
			t.Fatalf("with the byte at %d flipped, %d of %d answers are left", at, left, records)
		}
	}
	for end := 0; end < len(whole); end += step {
		if left := readAll(t, copied, whole[:end], n); left < stdbytes.Count(whole[:end], []byte("}\n")) {
			t.Fatalf("of the first %d bytes %d answers are left", end, left)
		}
	}

	// A folder in which everything is damaged a bit is opened, and the batch goes on.
	for _, name := range []string{batchFolder + "/" + id + linesEnd, batchFolder + "/" + id + recordEnd, batchFolder + "/" + id + journalEnd} {
		flip(t, filepath.Join(folder, name), 11)
	}
	for name, text := range map[string]string{"files/notes.txt": "mine", "batches/batch_0": "", "batches/" + newID(batchPrefix) + recordEnd: "torn", "files/" + newID(filePrefix): "half a file"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = openShop(t, options(folder), echo)
	r, answers := s.end(id)
	wantAll(t, n, r, answers)
	if _, err := os.Stat(filepath.Join(folder, "files/notes.txt")); err != nil {
		t.Errorf("a file that is not ours is gone: %v", err)
	}
}

// readAll returns how many answers a journal of these bytes has, which is written to path.
func readAll(t *testing.T, path string, text []byte, n int) (left int) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j, places, err := openJournal(path, n)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for i, p := range places {
		if p.n == 0 {
			continue
		}
		if _, ok := j.answer(i, p); !ok {
			t.Fatalf("the answer of line %d cannot be read again", i)
		}
		left++
	}
	return left
}

// flip damages a byte of a file.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[at] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALineOfADamagedInputFailsAndTheOthersAreAnswered(t *testing.T) {
	folder := t.TempDir()
	s := openShop(t, options(folder), nil)
	b := s.begin(input(9))
	s.stop()
	text, err := os.ReadFile(s.path(fileFolder, b.Input))
	if err != nil {
		t.Fatal(err)
	}
	flip(t, s.path(fileFolder, b.Input), stdbytes.IndexByte(text, '\n')) // the first two lines are one
	s = openShop(t, options(folder), echo)
	r, answers := s.end(b.ID)
	if r.Status != StatusCompleted || r.Done != 8 || answers["line-1"].Response == nil || answers["line-8"].Response == nil {
		t.Errorf("the batch is %+v, and its answers are of %v", r, slices.Sorted(maps.Keys(answers)))
	}
}

func TestAFullDiskKeepsLinesWaitingAndLosesNone(t *testing.T) {
	folder := t.TempDir()
	s := openShop(t, options(folder), nil)
	var full atomic.Bool
	full.Store(true)
	tried := make(chan struct{}, 1000)
	s.Store.write = func(f *os.File, b []byte, at int64) (int, error) {
		if full.Load() && at > 400 {
			tried <- struct{}{}
			n, _ := f.WriteAt(b[:len(b)/2], at)
			return n, syscall.ENOSPC
		}
		return f.WriteAt(b, at)
	}
	id := s.begin(input(20)).ID
	s.stop()
	s.run(echo)
	<-tried
	s.stop() // a pause of ten seconds is not waited for
	full.Store(false)
	s.run(echo)
	r, answers := s.end(id)
	wantAll(t, 20, r, answers)
}

func TestAFolderTakesNoMoreThanItsSize(t *testing.T) {
	o := options(t.TempDir())
	o.Size, o.File, o.Files, o.KeyBatches = "64KiB", "48KiB", 3, 1
	s := openShop(t, o, nil)
	add := func(n int) error {
		return s.addFile(context.Background(), &File{Owner: someone, Purpose: purposeInput}, strings.NewReader(strings.Repeat("x", n)), 0)
	}
	if err := add(50 << 10); !errors.Is(err, errLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if err := add(40 << 10); err != nil {
		t.Error(err)
	}
	if err := add(40 << 10); !errors.Is(err, errFull) {
		t.Errorf("a file for which there is no room: %v", err)
	}
	b := s.begin(input(4))
	if f := s.files[b.Input]; f == nil || s.deleteFile(someone, f.ID) != errInUse || s.deleteFile("other", f.ID) != errMissing {
		t.Errorf("the input of a batch can be deleted")
	}
	f := s.put(input(1))
	if err := add(1); !errors.Is(err, errMany) {
		t.Errorf("a file too many: %v", err)
	}
	r := record{ID: newID(batchPrefix), Owner: someone, Form: formOpenAI, Endpoint: Endpoints[0], Input: f.ID}
	if _, err := s.addBatch(r, []line{{}}, time.Hour); !errors.Is(err, errKeyMany) {
		t.Errorf("a batch too many: %v", err)
	}
	if entries, _ := filepath.Glob(filepath.Join(o.Path, "*", "*"+temporary)); len(entries) > 0 {
		t.Errorf("%v are left", entries)
	}
}

func TestACancelledBatchEndsWithWhatItHas(t *testing.T) {
	under := make(chan struct{}, 100)
	s := openShop(t, options(t.TempDir()), func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Request-Id"), "_1") {
			echo(w, r)
			return
		}
		under <- struct{}{}
		<-r.Context().Done() // as the engine, which closes the sequence
	})
	b := s.begin(input(30))
	for range s.opt.AtOnce {
		<-under
	}
	got, err := s.cancelBatch(someone, formOpenAI, b.ID)
	if err != nil || got.Status != StatusCancelling {
		t.Fatalf("%+v, %v", got, err)
	}
	r, answers := s.end(b.ID)
	if r.Status != StatusCancelled || r.Done != 1 || r.Undone != 29 || len(answers) != 30 || answers["line-7"].Error.Code != faultCancelled.Code || answers["line-1"].Response == nil {
		t.Errorf("the batch is %+v, with %d answers", r, len(answers))
	}
	if _, err := s.cancelBatch(someone, formOpenAI, b.ID); !errors.Is(err, errHasEnded) {
		t.Errorf("cancelled again: %v", err)
	}
}

func TestABatchEndsWithItsWindow(t *testing.T) {
	folder := t.TempDir()
	s := openShop(t, options(folder), nil)
	b := s.begin(input(3))
	s.batches[b.ID].Deadline = b.Deadline - 7200
	if err := writeRecord(s.path(batchFolder, b.ID+recordEnd), &s.batches[b.ID].record); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = openShop(t, options(folder), echo)
	r, answers := s.end(b.ID)
	if r.Status != StatusExpired || r.Undone != 3 || answers["line-2"].Error.Code != faultExpired.Code {
		t.Errorf("the batch is %+v, and its answers are %v", r, answers)
	}
	s.stop()
	for _, f := range s.files {
		f.Expires = 1
	}
	s.batches[b.ID].Ended = 1
	(&runner{Store: s.Store}).sweep(time.Now())
	if len(s.files) > 0 || len(s.batches) > 0 || s.used != 0 {
		t.Errorf("%d files and %d batches are left, of %d bytes", len(s.files), len(s.batches), s.used)
	}
}

func TestLinesThatFindAServerBusyAreSentAgain(t *testing.T) {
	var asked atomic.Int64
	s := openShop(t, options(t.TempDir()), func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 3 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		echo(w, r)
	})
	r, answers := s.end(s.begin(input(5)).ID)
	wantAll(t, 5, r, answers)
}

func TestKeysTakeTurns(t *testing.T) {
	o := options(t.TempDir())
	o.AtOnce = 1
	s := openShop(t, o, nil)
	for _, owner := range []string{"aa", "bb"} {
		f := s.put(input(3))
		r := record{ID: newID(batchPrefix), Owner: owner, Form: formOpenAI, Endpoint: Endpoints[0], Input: f.ID}
		lines, err := s.check(context.Background(), &r, f)
		if err == nil {
			_, err = s.addBatch(r, lines, time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	var turns []string
	s.run(func(w http.ResponseWriter, r *http.Request) {
		owner, _ := OwnerOf(r.Context())
		if !batcher.InBackground(r.Context()) {
			t.Error("a line does not give way to other requests")
		}
		turns = append(turns, fmt.Sprintf("%x", owner))
		echo(w, r)
	})
	<-s.ended
	<-s.ended
	s.stop()
	for i := range turns {
		if i > 0 && turns[i] == turns[i-1] {
			t.Errorf("the keys' turns are %v", turns)
			break
		}
	}
}

func TestAFolderHasOneServer(t *testing.T) {
	folder := t.TempDir()
	s := openShop(t, options(folder), nil)
	if _, err := New(options(folder), zerolog.Nop()).load(); err == nil {
		t.Error("two servers have the folder")
	}
	s.stop()
	if unlock, err := New(options(folder), zerolog.Nop()).load(); err != nil {
		t.Error(err)
	} else {
		unlock()
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte("\n00000000 0 o {}\n"))
	f.Add(append(sealed([]byte(`3 o {"a":1}`)), sealed([]byte("3 e x"))...))
	f.Fuzz(func(t *testing.T, text []byte) {
		left := readAll(t, filepath.Join(t.TempDir(), "journal"), text, 8)
		if most := stdbytes.Count(text, []byte("\n")) + 1; left > most {
			t.Errorf("%d answers in %d lines", left, most)
		}
		in := bufio.NewReaderSize(stdbytes.NewReader(text), 16)
		for sum := int64(0); ; {
			_, size, err := readLine(in, 20)
			if sum += size; err != nil {
				if sum != int64(len(text)) {
					t.Errorf("lines of %d bytes in a text of %d", sum, len(text))
				}
				return
			}
		}
	})
}
