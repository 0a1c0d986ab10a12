package batcher

// host is what a sequence knows of its engine.
type host struct {
	opt    Options
	bounds bounds
}
