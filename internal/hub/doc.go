// Package hub gets model files from the Hugging Face hub, or a server that
// speaks its protocol, and from Ollama's registry, into the cache that huggingface_hub keeps:
//
//	CACHE/models--OWNER--REPO/refs/main                 the commit last seen
//	                         /snapshots/COMMIT/FILE     a link to its blob
//	                         /blobs/ETAG                the contents
//	                         /blobs/ETAG.lutra.incomplete, .json   what has come so far
//	CACHE/.locks/models--OWNER--REPO/ETAG.lock          held while it comes
//
// So what `hf download` has brought is found here, and the other way round.
//
// A pull asks for the list of files, chooses one, asks for its commit, size and
// ETag, and fetches its parts over a few connections. A journal next to it notes
// what has come, so that the next pull goes on after any interruption. A file is
// moved to its place once size and hash are right.
//
// Models of Ollama's registry come by the same means: a manifest names the layers of a tag by
// their SHA-256. Each tag has a folder, ollama--NAMESPACE--NAME--TAG, with commits that are the
// SHA-256 of manifests, and in a snapshot model.gguf and params.json.
//
// Nothing that the hub says is trusted. Answers and headers are bounded, names
// that would leave the cache are refused, and redirects are counted. The token
// goes to the endpoint alone.
package hub
