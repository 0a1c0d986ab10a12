package server

import (
	"net/http"
	"os"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestDocumentsAreShownWithoutAKey(t *testing.T) {
	sweep.NoRace(t)
	f := start(t, &toy.Model{}, func(o *Options) { o.APIKeys, o.Documents = []string{"secret"}, os.DirFS("..") })
	for path, want := range map[string]int{"/docs": http.StatusMovedPermanently, "/docs/": http.StatusOK, "/docs/serving.html": http.StatusOK, "/docs/gone.html": http.StatusNotFound} {
		if w := f.as("GET", path, "", ""); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
	without := start(t, &toy.Model{}, nil)
	if w := without.as("GET", "/docs/", "", ""); w.Code != http.StatusNotFound {
		t.Errorf("without documents: status %d", w.Code)
	}
}
