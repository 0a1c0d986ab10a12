package static

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(f *File, header http.Header) *http.Response {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = header
	w := httptest.NewRecorder()
	f.Serve(w, r, "default-src 'none'")
	return w.Result()
}

func TestAFileIsCompressedForThoseWhoReadGzip(t *testing.T) {
	f := New("a.js", []byte(strings.Repeat("let x = 1;\n", 100)))
	for _, c := range []struct {
		accepted []string
		packed   bool
	}{
		{nil, false}, {[]string{"br"}, false}, {[]string{"gzip;q=0"}, false}, {[]string{"gzip; q=0.0, br"}, false},
		{[]string{"gzip"}, true}, {[]string{"GZIP"}, true}, {[]string{"br, gzip;q=0.5"}, true}, {[]string{"br", "gzip"}, true},
	} {
		res := get(f, http.Header{"Accept-Encoding": c.accepted})
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.packed || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("asked with %q: gzip is %v", c.accepted, got)
		}
		if again := get(f, http.Header{"Accept-Encoding": c.accepted, "If-None-Match": {res.Header.Get("Etag")}}); again.StatusCode != http.StatusNotModified {
			t.Errorf("asked with %q and its ETag: status %d", c.accepted, again.StatusCode)
		}
	}
	if res := get(New("LICENSE", []byte("short")), http.Header{"Accept-Encoding": {"gzip"}}); res.Header.Get("Content-Encoding") != "" || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("a short file without an end of its name: %v", res.Header)
	}
}
