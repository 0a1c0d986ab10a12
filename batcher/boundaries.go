package batcher

// A prompt of an agent begins as the one before it, up to the last messages, in whose place the next one may say something
// else. And of an answer's thoughts the next prompt may have nothing.

const (
	// boundaries counts the last messages that are marked, with the beginning of the answer, which ends a prompt.
	boundaries = 2
	// betweenControls is the most tokens between two control tokens of one boundary: names of roles, and line breaks.
	betweenControls = 8
)

// wantCheckpoints asks for checkpoints of a recurrent state where the last messages of a prompt begin. s is locked.
func wantCheckpoints(s *Sequence) {
	t, control := &s.task, s.setup.opt.Control
	if control == nil || !s.setup.bounds.recurrent {
		return
	}
	own := t.prefix(s.content.tokens)
	for i, found := len(own)-1, 0; i >= t.kv.Len() && found < boundaries; i-- {
		if !control(own[i]) {
			continue
		}
		for k := i - 1; k >= max(0, i-betweenControls-1); k-- {
			if control(own[k]) {
				i = k
			}
		}
		t.kv.Want(i)
		found++
	}
}
