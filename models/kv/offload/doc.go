// Package offload keeps blocks of KV caches, and checkpoints of recurrent states, in files, so that an engine that is
// started later, or another process, computes no prefix again.
//
//	engine ──Save──▶ queue ──▶ writer ──▶ FOLDER/MODEL/END-HASH.kv, .state
//	       ──Find──▶ Lookup ──Load──▶ reader ──▶ blocks that a sequence has, and that nobody else uses yet
//
// A file holds the blocks of a chunk: some hundred tokens of a prefix that ends where its name says. The name is a hash
// of all that the numbers depend on: the model's file, its options, the program, the kernels' family, the variant, and
// every token so far. Whoever finds a file by it, and whose checksums hold, has the bits that it would compute.
//
// Hashing a model's file takes longer than reading a prefix, so the hash is kept until the file changes.
//
// Files are written under other names and renamed, and nothing is ever changed in place, so a process may be killed at
// any point. No process trusts another, or its own past: what is not as it must be counts as not there, and is removed.
// Files of other names are left alone.
//
// The engine's goroutine copies blocks into a bounded queue and asks; it never waits for a disk. The package does not
// decide when sequences wait for what is read: batcher does.
package offload
