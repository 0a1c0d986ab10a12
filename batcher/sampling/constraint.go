package sampling

// Constraint narrows what may be sampled, for example to a grammar. A value holds the state of
// one completion, and never changes: Params has the value of an empty completion, and each token
// leads to a further one. So sequences that are forked, paused or
// guessed for need no copies and take nothing back. A completion is all tokens after the
// prompt, appended ones included.
//
// Constraints are compared, and so are pointers or other comparable values.
type Constraint interface {
	// Next is where the completion stands after one more token, which may be one that is
	// not allowed. The step loop calls it, so it returns at once and does not panic.
	Next(id int32) Constraint
	// Allow sets bit id%64 of mask[id/64] for every token that may come next. mask
	// comes zeroed and is valid during the call only. When the completion is whole,
	// allow the tokens of Params.Stop.
	Allow(mask []uint64)
}

// Preparer is a Constraint that takes time to find out what it is asked, and can do so
// alongside the model's step.
type Preparer interface {
	Constraint
	// Prepare begins to find out, if nobody has, and returns at once. The step loop
	// calls it as soon as it knows that the completion stands here.
	Prepare() Prepared
	// Forced is the token that comes next whatever the model says, false if Allow says
	// what may come. It is not sampled and uses no random number. It depends on the
	// completion alone, so that it is the same alone and in any batch.
	Forced() (id int32, ok bool)
}

// Fallible is a Constraint that may be unable to find out what may come next.
type Fallible interface {
	Constraint
	// Err is why the last call of Allow has allowed nothing; nil: it has found out.
	Err() error
}

// Prepared holds closed channels where a Preparer answers at once.
type Prepared struct {
	Forced  <-chan struct{} // Forced does
	Allowed <-chan struct{} // Allow does too
}

// Ready reports whether c is closed.
func Ready(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
