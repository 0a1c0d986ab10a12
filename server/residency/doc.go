// Package residency decides which of the models that a server can answer with are in memory.
//
//	Hold(name) ──▶ in memory ───────────────────────────────▶ Lease ──▶ Release
//	           └─▶ waits for a load ──▶ turn ──▶ room ──▶ loaded ─▲
//
// A model loads once for all who wait for it, and one model at a time. The least recently used model is unloaded
// to make room; pinned and leased ones stay. If all others are leased, the least recently used one takes no more
// requests, and goes when its last one has ended. So it never waits for a moment without requests that does not
// come.
//
// The owner of a lease has the registry of the models that were in memory when it was made. The package allocates
// nothing and reads no file: a Source loads its model.
package residency
