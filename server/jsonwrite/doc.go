// Package jsonwrite writes JSON answers piece by piece: whole ones (Reply), and
// streams of server-sent events (Events).
//
// A slow client holds one piece in memory. Every write has a deadline; after one
// has failed, nothing more is written.
package jsonwrite
