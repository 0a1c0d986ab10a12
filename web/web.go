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
//	                      ├─ js/schema, form                    answers that are held to a schema
//	                      ├─ js/attach                          files that go with a question
//	                      ├─ js/history, drawer, dates,         those that are kept, and as files
//	                      │     library, conversation, shape,
//	                      │     transfer, foreign
//	                      ├─ js/words ─ chinese                 the person's language
//	                      ├─ js/apikey, shortcuts               keys of both kinds
//	                      ├─ js/settings, panels, fields,       what the chosen model offers
//	                      │     named, offer, welcome, plans
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

import "net/http"

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
		if versioned {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if name == worker {
			w.Header().Set("Service-Worker-Allowed", "../") // the page's own path, behind any proxy
		}
		f.Serve(w, r, policy)
	})
}
