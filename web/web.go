// Package web holds the server's page: a chat, the search for an answer drawn as a
// tree, and what the engine is doing meanwhile.
//
//	index.html ── app.js ─┬─ js/chats, chat, receive, request   conversations, and their answers
//	                      ├─ js/thread, exchange, actions,      one that is shown
//	                      │     markdown, clipboard
//	                      ├─ js/history, library, transfer,     those that are kept, and as files
//	                      │     conversation, shape
//	                      ├─ js/apikey, shortcuts               keys of both kinds
//	                      ├─ js/settings, fields, named,        what the chosen model offers
//	                      │     offer, welcome
//	                      ├─ js/compare                         methods side by side
//	                      ├─ js/pareto                          what methods reach and cost
//	                      ├─ js/search, searchview, candidates, test-time scaling
//	                      │     reader, replay, tree, forest,
//	                      │     layout, votes, spent
//	                      ├─ js/server, status                  whether the server is ready
//	                      ├─ js/engine, metrics                 the live panel
//	                      └─ js/api, sse                        everything sent and received
//
// The files are served as they are: no build step, nothing from another host. The page
// uses the server's public API alone, by relative addresses, so that it works behind
// a proxy under any path.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed index.html *.css app.js icon.svg js/*.js
var files embed.FS

// Prefix is the path of the page's own files; the page itself is at "/".
const Prefix = "/web/"

// policy lets the page load from, and talk to, its own origin only. Model output is
// inserted as text; should that ever fail, the policy still blocks scripts.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is an embedded file with the headers that depend on its content.
type file struct {
	data []byte
	kind string // media type
	etag string
}

// Handler answers GET and HEAD for "/" and for everything under Prefix. Browsers may
// cache the files, but ask each time whether they are current: a new binary has a new
// page.
func Handler() http.Handler {
	served := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.etag)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
	})
}

// load reads the embedded files, by URL path.
func load() map[string]file {
	kinds := map[string]string{ // not from package mime, which reads the machine's tables
		".html": "text/html; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".js":   "text/javascript; charset=utf-8",
		".svg":  "image/svg+xml",
	}
	served := make(map[string]file)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		served[Prefix+name] = file{data, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		panic("web: embedded files: " + strings.TrimSpace(err.Error())) // the binary itself is broken
	}
	served["/"] = served[Prefix+"index.html"]
	return served
}
