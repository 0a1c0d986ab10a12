package batcher

// drafts holds what drafters have guessed of a stream.
type drafts struct {
	text []int32 // a copy of the stream's tokens
	by   []guess // one a drafter
}

// guess is one drafter's guess. Its first token is compared with the sampled one
// even if it is not computed.
type guess struct {
	Guess
	rate   float64 // how often it is expected to be right
	own    float64 // how often it has been right about this stream of late
	judged int     // guesses that own is made of
	begun  bool    // the drafter may read the text
	// A drafter that does not pay is tried after pauses, which double as long as its guesses are wrong.
	pause, wait int // steps: the last pause, and what is left of it
}

// due reports whether a drafter that does not pay is to be tried in this step.
func (g *guess) due() bool {
	g.wait--
	return g.wait < 0
}

// close gives back what drafters keep of the stream.
func (d *drafts) close() {
	for i := range d.by {
		if g := &d.by[i]; g.Notes != nil {
			g.Notes.Close()
			g.Notes, g.begun = nil, false
		}
	}
}
