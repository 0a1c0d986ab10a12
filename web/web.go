// Package web holds the server's page: a chat, the search for an answer drawn as a
// tree, and what the engine is doing meanwhile.
//
//	index.html ── app.js ─┬─ js/chats, chat, receive, request   conversations, and their answers
//	                      ├─ js/thread, exchange, actions,      one that is shown
//	                      │     clipboard
//	                      ├─ js/markdown ─ lexer, render, morph, code, maths
//	                      │                                     what a model writes
//	                      ├─ js/toolset, toolrun, calls, calculator
//	                      │                                     tools that a model may call
//	                      ├─ js/attach                          files that go with a question
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
//	                      ├─ js/offline ─ sw.js                 the page without a server
//	                      └─ js/api, sse                        everything sent and received
//
// The files are served as they are: no build step, nothing from another host. Libraries
// are copies of their releases in libraries. The page uses the server's public API alone, by
// relative addresses, so that it works behind a proxy under any path.
package web

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// Prefix is the path of the page's own files; the page itself is at "/".
const Prefix = "/web/"

// policy lets the page load from, and talk to, its own origin only. Model output is
// inserted as text; should that ever fail, the policy still blocks scripts, and text as
// markup: the one policy of Trusted Types names the service worker's address.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types worker"

// Handler answers GET and HEAD for "/" and for everything under Prefix. The page names
// its files below the version of all of them, so that browsers keep those without asking;
// for other addresses they ask each time: a new binary has a new page.
func Handler() http.Handler {
	s := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, versioned := s.name(r.URL.Path)
		f, ok := s.files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		if versioned {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Vary", "Accept-Encoding")
		if name == worker {
			h.Set("Service-Worker-Allowed", "../") // the page's own path, behind any proxy
		}
		data, tag := f.data, f.etag
		if packed := f.packed(); packed != nil && takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			data, tag = packed, f.etag+"-gzip"
		}
		h.Set("ETag", `"`+tag+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// takesGzip reports whether the client of r reads gzip.
func takesGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}
