package batcher

// host tells a sequence what its engine can take.
type host struct {
	opt    Options
	bounds bounds
}
