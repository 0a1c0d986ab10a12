package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// stale asks the hub for every entry, and lists what it has no longer, or with another size. An
// error is of a hub that does not answer.
func stale(ctx context.Context, c *client, entries []Entry) (list []string, err error) {
	for _, e := range entries {
		l, err := c.list(ctx, e.Ref)
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrUnreachable):
			return list, err
		case err != nil:
			list = append(list, fmt.Sprintf("%s: %v", e.Name, err))
			continue
		case !slices.ContainsFunc(l.Files, func(f sibling) bool { return f.Name == e.Ref.File }):
			list = append(list, fmt.Sprintf("%s: %s has no %s", e.Name, e.Ref.ID(), e.Ref.File))
			continue
		}
		size := l.room(func() int64 { return 0 }).needs(e.Ref.File)
		if d := size - e.Size; max(d, -d) > e.Size/100 { // sizes of the catalogue are rounded
			list = append(list, fmt.Sprintf("%s: %s has %d bytes, the catalogue says %d", e.Name, e.Ref, size, e.Size))
		}
	}
	return list, nil
}

// TestTheHubHasTheCatalogue asks the public hub. It is run before a release.
func TestTheHubHasTheCatalogue(t *testing.T) {
	if os.Getenv("LUTRA_CATALOGUE") == "" {
		t.Skip("LUTRA_CATALOGUE=1 asks the public hub for every model of the catalogue")
	}
	o, err := FromEnvironment(os.Getenv, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(o)
	if err != nil {
		t.Fatal(err)
	}
	list, err := stale(t.Context(), c, Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range list {
		t.Error(what)
	}
}

func TestWhatTheHubHasNoLongerIsListed(t *testing.T) {
	b := newBench(t)
	size := int64(len(b.file))
	entry := func(name, repo, file string, size int64) Entry {
		return Entry{Name: name, Ref: Ref{Owner: "acme", Repo: repo, File: file}, Size: size}
	}
	b.server.Put("acme/Large", "large.gguf", make([]byte, 2*size))
	entries := []Entry{
		entry("there", tiny.Repo, tiny.File, size), entry("rounded", tiny.Repo, tiny.File, size+size/200), entry("renamed", tiny.Repo, "Tiny-Q8_0.gguf", size),
		entry("vanished", "Gone-GGUF", "Gone.gguf", size), entry("grown", "Large", "large.gguf", size), entry("shrunk", "Large", "large.gguf", 3*size),
	}
	list, err := stale(t.Context(), b.c, entries)
	want := []string{"renamed: acme/Tiny-GGUF has no Tiny-Q8_0.gguf", "vanished: there is no public repository acme/Gone-GGUF", "grown: hf:acme/Large:large.gguf has 21000 bytes, the catalogue says 10500", "shrunk: "}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%q, %v; want %q", list, err, want)
	}
	for i := range want {
		if !strings.HasPrefix(list[i], want[i]) {
			t.Errorf("%q, want %q", list[i], want[i])
		}
	}
	b.endpointOnly(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	if list, err := stale(t.Context(), b.c, entries); !errors.Is(err, ErrUnreachable) || len(list) > 0 {
		t.Errorf("of a hub that does not answer: %q, %v", list, err)
	}
}

// TestEveryEntryOfTheCatalogueIsAskedFor holds the release check against a hub that has all.
func TestEveryEntryOfTheCatalogueIsAskedFor(t *testing.T) {
	h := hubtest.New(t)
	c, err := newClient(Options{Endpoint: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Catalogue() {
		h.Put(e.Ref.ID(), e.Ref.File, []byte("GGUF"))
	}
	list, err := stale(t.Context(), c, Catalogue())
	if err != nil || len(list) != len(Catalogue()) { // of four bytes each
		t.Errorf("%d of %d entries differ in size: %q, %v", len(list), len(Catalogue()), list, err)
	}
}
