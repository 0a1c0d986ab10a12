package hub

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

func TestAnInterruptedPullGoesOnWhereItStopped(t *testing.T) {
	b := newBench(t)
	ctx, interrupt := context.WithCancel(t.Context())
	// Part 3 stops in its midst, and what is left then is interrupted.
	stopped := make(chan struct{})
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "bytes=3000-3999" || ctx.Err() != nil {
			return false
		}
		w.Header().Set("Content-Range", "bytes 3000-3999/10500")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(b.file[3000:3400])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(stopped)
		return true
	}
	_, err := b.Pull(ctx, tiny, func(done, total int64) {
		if done == total-600 { // all but what the server holds back
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Pull = %v", err)
	}
	<-stopped
	if _, err := b.Find(tiny); !errors.Is(err, ErrAbsent) {
		t.Errorf("half a file is found: %v", err)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Missing != 600 || list[0].Ref != tiny {
		t.Errorf("List = %+v, %v", list, err)
	}
	before := len(b.server.Requests())
	b.pulled(t)
	var got []string
	for _, r := range b.server.Requests()[before:] {
		if r.CDN {
			got = append(got, r.Range)
		}
	}
	if !slices.Equal(got, []string{"bytes=3400-3999"}) {
		t.Errorf("the second pull asks for %q", got)
	}
}

func TestConnectionsThatBreakAreMadeAgain(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	broken := map[string]int{}
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !isCDN(b.server, r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		at := r.Header.Get("Range")
		if broken[at]++; broken[at] > 1 {
			return false
		}
		lo, hi := bounds(t, at)
		w.Header().Set("Content-Length", strconv.Itoa(hi-lo))
		w.Header().Set("Content-Range", strings.Replace(at, "=", " ", 1)+"/10500")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(b.file[lo : lo+(hi-lo)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	b.pulled(t)
	if len(b.waited) == 0 {
		t.Error("it does not wait before it tries again")
	}
}

func bounds(t *testing.T, header string) (lo, hi int) {
	t.Helper()
	first, last, _ := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	lo, err := strconv.Atoi(first)
	hi, err2 := strconv.Atoi(last)
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
	return lo, hi + 1
}

func TestAServerThatNeverSendsAnythingIsGivenUp(t *testing.T) {
	b := newBench(t)
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if isCDN(b.server, r) {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	if _, err := b.Pull(t.Context(), tiny, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("Pull = %v", err)
	}
	if len(b.waited) < maxFailures || slices.Max(b.waited) > lastRetry || b.waited[0] != firstRetry {
		t.Errorf("it waits %v", b.waited)
	}
}

func TestAHubThatIsNotThereIsSaidAtOnce(t *testing.T) {
	b := newBench(t)
	b.server.URL = "http://127.0.0.1:1"
	h := b.open(t, Options{Cache: t.TempDir()})
	if _, err := h.Pull(t.Context(), tiny, nil); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("Pull = %v", err)
	}
	if len(b.waited) > 0 {
		t.Errorf("it waits %v", b.waited)
	}
}

func TestAServerWithoutRangesSendsTheWholeFile(t *testing.T) {
	for name, status := range map[string]int{"ignores them": http.StatusOK, "refuses them": http.StatusRequestedRangeNotSatisfiable} {
		b := newBench(t)
		b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case !isCDN(b.server, r):
				return false
			case r.Header.Get("Range") != "" && status != http.StatusOK:
				w.WriteHeader(status)
			default:
				w.Header().Set("Content-Length", strconv.Itoa(len(b.file)))
				_, _ = w.Write(b.file)
			}
			return true
		}
		path, err := b.Pull(t.Context(), tiny, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.file) {
			t.Errorf("%s: the file differs: %v", name, err)
		}
	}
}

func TestAServerOfAnotherVersionIsNotMixedIn(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	n := 0
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !isCDN(b.server, r) {
			return false
		}
		mu.Lock()
		n++
		tag := `"edge-` + strconv.Itoa(n%2) + `"`
		mu.Unlock()
		w.Header().Set("ETag", tag) // each server of the file has one of its own
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.file))
		return true
	}
	b.pulled(t)
	conditional := 0
	for _, r := range b.server.Requests() {
		if r.IfRange != "" {
			conditional++
		}
	}
	if conditional == 0 {
		t.Error("no part was asked for under a condition")
	}
}

func TestAPartFromAnOlderHuggingFaceHubIsTakenOver(t *testing.T) {
	b := newBench(t)
	blobs := filepath.Join(b.Cache(), "models--acme--Tiny-GGUF", "blobs")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(blobs, hubtest.SHA256(b.file)+".incomplete")
	if err := os.WriteFile(part, b.file[:9500], 0o600); err != nil {
		t.Fatal(err)
	}
	b.pulled(t)
	if got := b.ranges(); !slices.Equal(got, []string{"bytes=10000-10499", "bytes=9500-9999"}) {
		t.Errorf("ranges %q", got)
	}
	if _, err := os.Stat(part); err == nil {
		t.Error("the part is still there")
	}
}

func TestAFileWithHolesIsNeverTakenForABeginning(t *testing.T) {
	b := newBench(t)
	blob := b.folder(tiny).blob(hubtest.SHA256(b.file))
	if err := os.MkdirAll(filepath.Dir(blob), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob+incomplete, make([]byte, len(b.file)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, journal := range []string{"", "{", `{"size":10500,"part":1000,"have":[-5,0,0,0,0,0,0,0,0,0,0]}`, `{"size":10500,"part":1000,"have":[2000,0,0,0,0,0,0,0,0,0,0]}`,
		`{"size":10500,"part":1000,"have":[1]}`, `{"size":1,"part":0}`} {
		if err := os.WriteFile(blob+incomplete+".json", []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		if j := readJournal(blob+incomplete+".json", tiny.File, 10500, 1000); j.done() != 0 {
			t.Errorf("the journal %q says that %d bytes are there", journal, j.done())
		}
	}
	b.pulled(t)
}

func TestADiskThatIsTooSmallIsAnError(t *testing.T) {
	b := newBench(t)
	b.free = func(string) (int64, error) { return 5000, nil }
	if _, err := b.Pull(t.Context(), tiny, nil); !errors.Is(err, ErrRoom) {
		t.Errorf("Pull = %v", err)
	}
	if got := b.ranges(); len(got) != 0 {
		t.Errorf("it fetches %q", got)
	}
	b.free = func(string) (int64, error) { return 0, errors.ErrUnsupported }
	b.pulled(t)
}

func TestADiskThatFillsUpIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	b := newBench(t)
	found, err := b.c.find(t.Context(), tiny)
	if err != nil {
		t.Fatal(err)
	}
	r := &found[0]
	path := filepath.Join(t.TempDir(), "journal.json")
	err = (&transfer{c: b.c, r: r, f: full, j: readJournal(path, tiny.File, r.size, b.part)}).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "disk") || !strings.Contains(err.Error(), "full") {
		t.Errorf("run = %v", err)
	}
	if j := readJournal(path, tiny.File, r.size, b.part); j.done() != 0 {
		t.Errorf("the journal says that %d bytes were written", j.done())
	}
}
