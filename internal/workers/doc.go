// Package workers has other servers of this program go on with the candidates of this
// one's searches. It is a tts.Source.
//
//	search ──▶ Generate ── jobs ──▶ divide ──▶ worker ── POST /v1/completions ──▶ server
//	             ▲                    ▲          │ fails, hangs, is slow
//	             └─ here, if nobody ──┴──────────┘ what it has not finished
//
// Workers are trusted no more than anything from outside. Only the configured addresses are asked, whatever an answer
// says, and every answer is read with bounds and a deadline. Tokens count only if they come from the same build of the
// same model and it can have made them; the search generates some again. A worker that fails rests for a while, one
// whose tokens are wrong for an hour. Nothing that a worker does fails a search: in the end this server does the work
// itself.
package workers
