// Package adversary drives a server as those do who wish it ill, or know no
// better, and sees whether others feel it.
//
//	alone:   ask ─ ask ─ ask          how long a question takes
//	beside:  ask ─ ask ─ ask ...      how long it takes now
//	         huge bodies ┐
//	         slow senders ├ many clients at once
//	         leavers ... ┘
//
// It knows a server by its HTTP API alone. What it reports are requests by kind
// and status, those that never ended, answers that were wrong, the slowest
// question, and how much memory the server's process had at most.
//
// Its clients do not go on and on without a breath: they share the machine with
// the server, and would measure themselves.
package adversary
