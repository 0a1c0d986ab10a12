// Package hubtest serves a hub for tests. One server speaks the protocols of the Hugging Face hub and of
// Ollama's registry; a second one, on another host, has the contents.
package hubtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's hash
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hub is the two servers. Its fields are set while nobody asks, and before Put
// where another process will.
type Hub struct {
	URL string // of the endpoint
	CDN string // of the host with the contents

	// Before, if set, may answer a request itself, and says so. Requests for
	// contents have the CDN's host.
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// Token, if set, is what a request must bear.
	Token string

	mu    sync.Mutex
	repos map[string]map[string]file
	seen  []Request

	manifests map[string][]byte // of Ollama's registry, by NAMESPACE/NAME:TAG
	blobs     map[string][]byte // of it, by SHA-256
}

// file is one of a repository. Its hash is computed once: it is asked for by every
// request, of models of megabytes.
type file struct {
	contents []byte
	sha256   string
}

// Request is a request that a server got.
type Request struct {
	Method, Path  string
	CDN           bool
	Authorization string
	Range         string
	IfRange       string
}

// New starts the servers for as long as the test runs.
func New(t testing.TB) *Hub {
	t.Helper()
	h := &Hub{repos: map[string]map[string]file{}, manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	endpoint, cdn := httptest.NewServer(h.note(false, h.endpoint)), httptest.NewServer(h.note(true, h.contents))
	t.Cleanup(endpoint.Close)
	t.Cleanup(cdn.Close)
	h.URL, h.CDN = endpoint.URL, cdn.URL
	return h
}

// Put gives a repository a file.
func (h *Hub) Put(repo, name string, contents []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos[repo] == nil {
		h.repos[repo] = map[string]file{}
	}
	h.repos[repo][name] = file{contents, SHA256(contents)}
}

// Requests returns the requests so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// SHA256 returns the name of contents in the cache.
func SHA256(contents []byte) string {
	sum := sha256.Sum256(contents)
	return hex.EncodeToString(sum[:])
}

// Commit returns the newest commit of a repository.
func (h *Hub) Commit(repo string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return commit(h.repos[repo])
}

func commit(files map[string]file) string {
	sum := sha1.New()
	for _, name := range names(files) {
		fmt.Fprintf(sum, "%s %s\n", name, files[name].sha256)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func names(files map[string]file) []string {
	list := make([]string, 0, len(files))
	for name := range files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// RoundTrip answers without a network, for tests in a bubble of testing/synctest.
func (h *Hub) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	handler := h.note(false, h.endpoint)
	if strings.HasSuffix(h.CDN, "//"+r.Host) {
		handler = h.note(true, h.contents)
	}
	w := httptest.NewRecorder()
	handler(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func (h *Hub) note(cdn bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, Request{Method: r.Method, Path: r.URL.Path, CDN: cdn, Authorization: r.Header.Get("Authorization"),
			Range: r.Header.Get("Range"), IfRange: r.Header.Get("If-Range")})
		before := h.Before
		h.mu.Unlock()
		if before == nil || !before(w, r) {
			next(w, r)
		}
	}
}

// endpoint answers lists, and leads from files to the CDN.
func (h *Hub) endpoint(w http.ResponseWriter, r *http.Request) {
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		refuse(w, http.StatusUnauthorized, "RepoNotFound")
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/v2/") {
		h.registry(w, r)
		return
	}
	path := strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"), "api/models/"), "/")
	if len(path) < 4 {
		refuse(w, http.StatusNotFound, "")
		return
	}
	files, ok := h.repos[path[0]+"/"+path[1]]
	switch {
	case !ok:
		refuse(w, http.StatusUnauthorized, "RepoNotFound") // as the hub says it to strangers
	case strings.HasPrefix(r.URL.Path, "/api/"):
		list(w, files)
	default:
		h.resolve(w, r, files, strings.Join(path[4:], "/"))
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.WriteHeader(status)
}

func list(w http.ResponseWriter, files map[string]file) {
	type lfs struct {
		SHA256 string `json:"sha256"`
		Size   int    `json:"size"`
	}
	type sibling struct {
		Name string `json:"rfilename"`
		Size int    `json:"size"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	var siblings []sibling
	for _, name := range names(files) {
		s := sibling{Name: name, Size: len(files[name].contents)}
		if large(name) {
			s.LFS = &lfs{files[name].sha256, s.Size}
		}
		siblings = append(siblings, s)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit(files), "siblings": siblings}) // the test sees what is missing
}

// large tells which files the hub keeps apart from git.
func large(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".safetensors")
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, files map[string]file, name string) {
	f, ok := files[name]
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound")
		return
	}
	w.Header().Set("X-Repo-Commit", commit(files))
	if !large(name) {
		sum := sha1.New()
		fmt.Fprintf(sum, "blob %d\x00%s", len(f.contents), f.contents)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum.Sum(nil))+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.contents))
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+f.sha256+`"`)
	w.Header().Set("X-Linked-Size", strconv.Itoa(len(f.contents)))
	http.Redirect(w, r, h.CDN+"/"+f.sha256+"?signature=secret", http.StatusFound)
}

// contents sends a file, or ranges of it.
func (h *Hub) contents(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	found := h.blobs[strings.TrimPrefix(r.URL.Path, "/")]
	for _, files := range h.repos {
		for _, f := range files {
			if f.sha256 == strings.TrimPrefix(r.URL.Path, "/") {
				found = f.contents
			}
		}
	}
	h.mu.Unlock()
	if found == nil || r.URL.Query().Get("signature") == "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("ETag", `"cdn-`+r.URL.Path[1:9]+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found))
}
