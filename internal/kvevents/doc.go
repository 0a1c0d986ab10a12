// Package kvevents tells routers which prefixes the caches of this process hold, as vLLM
// does: over ZeroMQ, in messages of three frames.
//
//	kv.Cache ──Observer──▶ feed ──▶ batches ──▶ PUB   kv@POD@MODEL, sequence number, msgpack
//	         (engine)   bounded by the cache  └──▶ log of the latest ──▶ ROUTER, for who missed some
//
// The engine only notes changes; a goroutine does the rest. A change that is undone before that goroutine has seen it
// is forgotten, so no more can wait than the cache has blocks, and nothing is lost however slow the goroutine is.
//
// A block's hash covers the names of the model and of its adapter, and all tokens to the block's end. It is the same in
// every process, so routers know equal prefixes on several replicas as one.
package kvevents
