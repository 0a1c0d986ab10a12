// Package residency decides which of the models that a server can answer with are in memory.
//
//	Hold(name) ──▶ in memory ───────────────────────────────▶ Lease ──▶ Release
//	           └─▶ waits for a load ──▶ turn ──▶ room ──▶ loaded ─▲
//
// A model loads once for all who wait for it, and one model at a time. Room is made by
// unloading the model whose use is longest ago; what is pinned or leased stays. Where all
// that could go is leased, the one whose use is longest ago takes no more requests, and goes
// when those that it has have ended: it never waits for a moment without requests that does
// not come.
//
// Whoever has a lease has the registry of the models that were in memory when it was made.
// The package allocates nothing and reads no file: a Source says how its model is loaded.
package residency
