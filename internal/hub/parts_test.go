package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// big is a model in three parts of 2500, 1500 and 700 bytes.
var big = Ref{Owner: "acme", Repo: "Big-GGUF", Quant: "Q1_0"}

func partName(no int) string { return fmt.Sprintf("q/Big-Q1_0-%05d-of-00003.gguf", no) }

// withBig is a hub that has it; parts are its contents.
func withBig(t *testing.T) (b *bench, parts [][]byte) {
	t.Helper()
	b = newBench(t)
	all := contents(4700)
	parts = [][]byte{all[:2500], all[2500:4000], all[4000:]}
	for i, p := range parts {
		b.server.Put("acme/Big-GGUF", partName(i+1), p)
	}
	return b, parts
}

func TestAllPartsOfAModelArePulledUnderOneNameWithOneProgress(t *testing.T) {
	b, parts := withBig(t)
	var told []int64
	path, err := b.Pull(t.Context(), big, func(done, total int64) {
		if total != 4700 {
			t.Errorf("a total of %d", total)
		}
		told = append(told, done)
	})
	if err != nil || filepath.Base(path) != "Big-Q1_0-00001-of-00003.gguf" {
		t.Fatalf("Pull = %q, %v", path, err)
	}
	if !slices.IsSorted(told) || told[0] != 0 || told[len(told)-1] != 4700 {
		t.Errorf("progress %v", told)
	}
	for i, want := range parts {
		beside := filepath.Join(filepath.Dir(path), filepath.Base(partName(i+1)))
		if got, err := os.ReadFile(beside); err != nil || !bytes.Equal(got, want) {
			t.Errorf("part %d has %d bytes, %v", i+1, len(got), err)
		}
	}
	for _, ref := range []Ref{big, {Owner: "acme", Repo: "Big-GGUF"}, {Owner: "acme", Repo: "Big-GGUF", File: partName(2)}} {
		if found, err := b.Find(ref); err != nil || found != path {
			t.Errorf("Find(%s) = %q, %v", ref, found, err)
		}
	}
	before := len(b.ranges())
	if again, err := b.Pull(t.Context(), big, nil); err != nil || again != path || len(b.ranges()) != before {
		t.Errorf("a second pull = %q, %v, and fetches %d ranges", again, err, len(b.ranges())-before)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Ref.File != partName(1) || list[0].Path != path || list[0].Size != 4700 || list[0].Parts != 3 || list[0].Lacking != 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if freed, err := b.Remove(big); err != nil || freed < 4700 {
		t.Errorf("Remove = %d, %v", freed, err)
	}
	if _, err := os.Stat(filepath.Join(b.Cache(), "models--acme--Big-GGUF")); err == nil {
		t.Error("something is left of it")
	}
}

func TestAnInterruptedPullOfPartsGoesOnInThePartWhereItStopped(t *testing.T) {
	b, _ := withBig(t)
	ctx, interrupt := context.WithCancel(t.Context())
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		held := ctx.Err() == nil && r.Header.Get("Range") == "bytes=1000-1499" // the second part's end
		if held {
			<-r.Context().Done()
		}
		return held
	}
	_, err := b.Pull(ctx, big, func(done, _ int64) {
		if done == 3500 {
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Pull = %v", err)
	}
	if _, err := b.Find(big); !errors.Is(err, ErrAbsent) {
		t.Errorf("some parts are found as a model: %v", err)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Ref.File != partName(1) || list[0].Parts != 3 || list[0].Lacking != 2 || list[0].Missing != 500 {
		t.Errorf("List = %+v, %v", list, err)
	}
	before := len(b.server.Requests())
	var first int64 = -1
	if _, err := b.Pull(t.Context(), big, func(done, _ int64) {
		if first < 0 {
			first = done
		}
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range b.server.Requests()[before:] {
		if r.CDN {
			got = append(got, r.Range)
		}
	}
	if !slices.Equal(got, []string{"bytes=1000-1499", "bytes=0-699"}) || first != 3500 {
		t.Errorf("the second pull asks for %q and begins at %d", got, first)
	}
}

func TestWhatHasComeOfAModelInPartsCanBeRemoved(t *testing.T) {
	b, _ := withBig(t)
	ctx, interrupt := context.WithCancel(t.Context())
	if _, err := b.Pull(ctx, big, func(done, _ int64) {
		if done > 3000 {
			interrupt()
		}
	}); err == nil {
		t.Fatal("it was not interrupted")
	}
	list, err := b.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("List = %+v, %v", list, err)
	}
	if _, err := b.Remove(list[0].Ref); err != nil {
		t.Fatal(err)
	}
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("still there: %+v, %v", list, err)
	}
}

func TestAModelOfWhichTheHubLacksPartsIsRefusedWithTheirNames(t *testing.T) {
	b := newBench(t)
	b.server.Put("acme/Big-GGUF", partName(1), []byte("GGUF"))
	b.server.Put("acme/Big-GGUF", partName(3), []byte("GGUF"))
	_, err := b.Pull(t.Context(), big, nil)
	if !errors.Is(err, ErrChoice) || !strings.Contains(err.Error(), partName(2)) || strings.Contains(err.Error(), partName(3)) {
		t.Errorf("Pull = %v", err)
	}
	b.server.Put("acme/Big-GGUF", "q/Huge-Q8_0-00001-of-09999.gguf", []byte("GGUF"))
	_, err = b.Pull(t.Context(), Ref{Owner: "acme", Repo: "Big-GGUF", Quant: "Q8_0"}, nil)
	if !errors.Is(err, ErrChoice) || !strings.Contains(err.Error(), "one of 9999 parts, at most 1024") {
		t.Errorf("Pull = %v", err)
	}
}

func TestADiskThatIsTooSmallForAllPartsGetsNone(t *testing.T) {
	b, _ := withBig(t)
	b.free = func(string) (int64, error) { return 4000, nil }
	if _, err := b.Pull(t.Context(), big, nil); !errors.Is(err, ErrRoom) || len(b.ranges()) != 0 {
		t.Errorf("Pull = %v, and %d ranges were fetched", err, len(b.ranges()))
	}
}

func TestADamagedPartIsDeletedAndNamed(t *testing.T) {
	b, parts := withBig(t)
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "bytes=0-699" || !isCDN(b.server, r) {
			return false
		}
		w.Header().Set("Content-Range", "bytes 0-699/700")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(bytes.Repeat([]byte{1}, len(parts[2])))
		return true
	}
	if _, err := b.Pull(t.Context(), big, nil); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), partName(3)) {
		t.Errorf("Pull = %v", err)
	}
	if _, err := b.Find(big); !errors.Is(err, ErrAbsent) {
		t.Errorf("Find = %v", err)
	}
}
