// Package workers has other servers of this program go on with the candidates of this
// one's searches. It is a tts.Source.
//
//	search ──▶ Generate ── jobs ──▶ divide ──▶ worker ── POST /v1/completions ──▶ server
//	             ▲                    ▲          │ fails, hangs, is slow
//	             └─ here, if nobody ──┴──────────┘ what it has not finished
//
// Workers are believed as little as anything from outside: nothing but the configured
// addresses is asked, whatever an answer says; every answer is read with bounds and a
// deadline; tokens count only if they come from the same build of the same model and are
// ones that it can have made, and some are generated again by the search. A worker that
// fails rests for a while, one whose tokens are wrong for an hour. Nothing that a worker
// does fails a search: in the end this server does the work itself.
package workers
