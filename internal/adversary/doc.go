// Package adversary attacks a server with hostile and careless clients, and measures
// whether other clients notice.
//
//	alone:   ask ─ ask ─ ask          how long a question takes
//	beside:  ask ─ ask ─ ask ...      how long it takes now
//	         huge bodies ┐
//	         slow senders ├ many clients at once
//	         leavers ... ┘
//
// It uses the server's HTTP API alone. It reports requests by kind and status, those
// that never ended, wrong answers and the slowest question.
//
// Its clients pause between requests: they share the machine with the server, and would
// otherwise measure themselves.
package adversary
