// Package manual makes a site of the repository's documents: README.md and whatever its links
// lead to.
//
//	README.md ── links ──▶ documents ── goldmark ──▶ pages, anchors as on GitHub ──▶ Handler, Write
//	                       pictures, examples ─────▶ as they are
//	                       sections ───────────────▶ search.js, which the page looks through
//
// All addresses in it are relative: it works under any path, and from a folder. It loads nothing
// from other hosts.
//
// The server has it for machines without the internet, whose people have no other manual: 1.8 MB of
// the program, and nothing until somebody asks for a page.
package manual
