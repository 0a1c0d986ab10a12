package batcher

// setup tells a sequence what its engine can take, and how it is tuned.
type setup struct {
	opt    Options
	bounds bounds
}
