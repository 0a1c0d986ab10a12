package hub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

const repo = "acme/Tiny-GGUF"

var tiny = Ref{Owner: "acme", Repo: "Tiny-GGUF", File: "Tiny-Q4_K_M.gguf"}

// contents are n bytes that repeat nowhere.
func contents(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b) // never fails
	return b
}

// bench is a hub with a cache, whose files come in parts of 1000 bytes, and
// which waits for nothing but writes down how long it would.
type bench struct {
	*Hub
	server *hubtest.Hub
	file   []byte
	mu     sync.Mutex
	waited []time.Duration
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: hubtest.New(t), file: contents(10_500)}
	b.server.Put(repo, tiny.File, b.file)
	b.server.Put(repo, "README.md", []byte("# Tiny"))
	b.Hub = b.open(t, Options{Cache: t.TempDir()})
	return b
}

func (b *bench) open(t *testing.T, o Options) *Hub {
	t.Helper()
	o.Endpoint, o.Registry = b.server.URL, b.server.URL
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.part = 1000
	h.c.wait = func(ctx context.Context, d time.Duration) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waited = append(b.waited, d)
		return ctx.Err()
	}
	return h
}

// pulled pulls the file and looks at it.
func (b *bench) pulled(t *testing.T) string {
	t.Helper()
	path, err := b.Pull(t.Context(), tiny, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.file) {
		t.Fatalf("the file has %d bytes that differ from the %d of the hub: %v", len(got), len(b.file), err)
	}
	return path
}

// ranges returns the ranges that the host with the contents was asked for.
func (b *bench) ranges() (list []string) {
	for _, r := range b.server.Requests() {
		if r.CDN {
			list = append(list, r.Range)
		}
	}
	slices.Sort(list)
	return list
}

func isCDN(h *hubtest.Hub, r *http.Request) bool { return strings.HasSuffix(h.CDN, r.Host) }

func TestAPulledFileLiesWhereHuggingFaceHubKeepsIt(t *testing.T) {
	b := newBench(t)
	path := b.pulled(t)
	commit, sha := b.server.Commit(repo), hubtest.SHA256(b.file)
	root := filepath.Join(b.Cache(), "models--acme--Tiny-GGUF")
	if want := filepath.Join(root, "snapshots", commit, tiny.File); path != want {
		t.Errorf("Pull = %s, want %s", path, want)
	}
	if target, err := os.Readlink(path); err != nil || target != filepath.Join("..", "..", "blobs", sha) {
		t.Errorf("the file links to %q, %v", target, err)
	}
	if main, err := os.ReadFile(filepath.Join(root, "refs", "main")); err != nil || string(main) != commit {
		t.Errorf("refs/main = %q, %v", main, err)
	}
	blobs, err := os.ReadDir(filepath.Join(root, "blobs"))
	if err != nil || len(blobs) != 1 || blobs[0].Name() != sha {
		t.Errorf("blobs are %v, %v", blobs, err)
	}
	if _, err := os.Stat(filepath.Join(b.Cache(), ".locks", "models--acme--Tiny-GGUF", sha+".lock")); err != nil {
		t.Error(err)
	}
	if found, err := b.Find(tiny); err != nil || found != path {
		t.Errorf("Find = %q, %v", found, err)
	}
}

func TestAFileComesInPartsOverSeveralConnections(t *testing.T) {
	b := newBench(t)
	b.pulled(t)
	got := b.ranges()
	if len(got) != 11 || !slices.Contains(got, "bytes=0-999") || !slices.Contains(got, "bytes=10000-10499") {
		t.Errorf("ranges %q", got)
	}
}

func TestWhatHuggingFaceHubHasBroughtIsNotFetchedAgain(t *testing.T) {
	b := newBench(t)
	commit, sha := b.server.Commit(repo), hubtest.SHA256(b.file)
	root := filepath.Join(b.Cache(), "models--acme--Tiny-GGUF")
	for _, dir := range []string{"blobs", "refs", "snapshots/" + commit} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(root, "blobs", sha), b.file, 0o600),
		os.WriteFile(filepath.Join(root, "refs", "main"), []byte(commit), 0o600),
		os.Symlink("../../blobs/"+sha, filepath.Join(root, "snapshots", commit, tiny.File)),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []Ref{tiny, {Owner: "acme", Repo: "Tiny-GGUF"}, {Owner: "acme", Repo: "Tiny-GGUF", Quant: "q4_k_m"}} {
		if path, err := b.Find(ref); err != nil || filepath.Base(path) != tiny.File {
			t.Errorf("Find(%s) = %q, %v", ref, path, err)
		}
	}
	if n := len(b.server.Requests()); n != 0 {
		t.Errorf("Find makes %d requests", n)
	}
	b.pulled(t)
	if got := b.ranges(); len(got) != 0 {
		t.Errorf("what is there was fetched: %q", got)
	}
}

func TestANewerVersionSharesWhatHasNotChanged(t *testing.T) {
	b := newBench(t)
	first := b.pulled(t)
	b.server.Put(repo, "README.md", []byte("# Tiny, again"))
	before := len(b.ranges())
	second := b.pulled(t)
	if first == second || len(b.ranges()) != before {
		t.Errorf("from %s to %s with %d requests for contents", first, second, len(b.ranges())-before)
	}
	if found, err := b.Find(tiny); err != nil || found != second {
		t.Errorf("Find = %q, %v; want the newer one", found, err)
	}
}

func TestTheTokenGoesToTheEndpointAlone(t *testing.T) {
	b := newBench(t)
	b.server.Token = "hf_secret"
	b.Hub = b.open(t, Options{Cache: t.TempDir(), Token: "hf_secret"})
	b.pulled(t)
	for _, r := range b.server.Requests() {
		if want := !r.CDN; (r.Authorization == "Bearer hf_secret") != want {
			t.Errorf("%s %s, CDN %v: Authorization %q", r.Method, r.Path, r.CDN, r.Authorization)
		}
	}
}

func TestAFileWithTheWrongHashIsDeleted(t *testing.T) {
	b := newBench(t)
	other := contents(10_500)
	other[7]++
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if isCDN(b.server, r) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(other))
			return true
		}
		return false
	}
	_, err := b.Pull(t.Context(), tiny, nil)
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), hubtest.SHA256(b.file)) {
		t.Errorf("Pull = %v", err)
	}
	left, err := os.ReadDir(filepath.Join(b.Cache(), "models--acme--Tiny-GGUF", "blobs"))
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	b.server.Before = nil
	b.pulled(t)
}

func TestTwoPullsOfAFileFetchItOnce(t *testing.T) {
	b := newBench(t)
	begun, going := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if isCDN(b.server, r) {
			once.Do(func() { close(begun) })
			<-going
		}
		return false
	}
	results := make(chan error, 2)
	pull := func() {
		_, err := b.Pull(t.Context(), tiny, nil)
		results <- err
	}
	go pull()
	<-begun
	if _, err := b.Remove(tiny); err == nil || !strings.Contains(err.Error(), "downloaded") {
		t.Errorf("Remove while it comes = %v", err)
	}
	waiting := make(chan struct{})
	b.o.Waiting = func() { close(waiting) }
	go pull()
	<-waiting
	close(going)
	if err := errors.Join(<-results, <-results); err != nil {
		t.Fatal(err)
	}
	if got := b.ranges(); len(got) != 11 {
		t.Errorf("%d parts were fetched, of 11", len(got))
	}
}

func TestNothingIsDownloadedOffline(t *testing.T) {
	b := newBench(t)
	b.pulled(t)
	n := len(b.server.Requests())
	offline := b.open(t, Options{Cache: b.Cache(), Offline: true})
	if _, err := offline.Pull(t.Context(), tiny, nil); !errors.Is(err, ErrOffline) {
		t.Errorf("Pull = %v", err)
	}
	if path, err := offline.Find(tiny); err != nil || path == "" {
		t.Errorf("Find = %q, %v", path, err)
	}
	if len(b.server.Requests()) != n {
		t.Error("somebody was asked")
	}
}

func TestWithoutLinksTheFileItselfIsInTheSnapshot(t *testing.T) {
	b := newBench(t)
	b.Hub = b.open(t, Options{Cache: t.TempDir(), Copy: true})
	path := b.pulled(t)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file is %v, %v", info, err)
	}
	b.server.Put(repo, "README.md", []byte("# Another commit"))
	b.pulled(t)
	if freed, err := b.Remove(tiny); err != nil || freed < int64(len(b.file)) {
		t.Errorf("Remove = %d, %v", freed, err)
	}
	if _, err := b.Find(tiny); !errors.Is(err, ErrAbsent) {
		t.Errorf("Find = %v", err)
	}
}

func TestProgressGoesFromWhatIsThereToTheSize(t *testing.T) {
	b := newBench(t)
	var seen []int64
	if _, err := b.Pull(t.Context(), tiny, func(done, total int64) {
		if total != 10_500 {
			t.Errorf("total %d", total)
		}
		seen = append(seen, done)
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 2 || seen[0] != 0 || seen[len(seen)-1] != 10_500 || !slices.IsSorted(seen) {
		t.Errorf("progress %v", seen)
	}
}

func TestVerifyKnowsTheHashesOfTheHub(t *testing.T) {
	const text = "hello\n"
	for etag, good := range map[string]bool{
		"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03": true,
		"5891B5B522D5DF086D0FF0B110FBD9D21BB4FC7163AF34D08286A2E846F6BE03": true,
		"0000b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03": false,
		"ce013625030ba8dba906f756967f9e9ca394464a":                         true, // git hash-object
		"0e013625030ba8dba906f756967f9e9ca394464a":                         false,
		"anything-else": true,
	} {
		if err := verify(t.Context(), strings.NewReader(text), etag, int64(len(text))); (err == nil) != good {
			t.Errorf("verify against %s = %v", etag, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := verify(ctx, io.LimitReader(zeros{}, 1<<40), strings.Repeat("0", 64), 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted verify = %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
