// Package zmtp is the publishing side of ZeroMQ: ZMTP 3.0 over TCP without encryption
// (https://rfc.zeromq.org/spec/23/), as far as a PUB socket and a ROUTER that answers
// requests need it.
//
//	Publish ──▶ a bounded queue for each subscriber ──▶ its connection
//
// Publish never waits. A subscriber that does not keep up loses messages, which are
// counted; one that takes nothing for a while is disconnected. What peers send is bounded
// before it is stored. A peer that is silent keeps nobody else waiting, and nobody out:
// until it asks for something, it gives its place to one that comes when all are taken.
package zmtp
