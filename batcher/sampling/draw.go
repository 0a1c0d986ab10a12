package sampling

// Sampled as Draw.ID asks for a token instead of naming one.
const Sampled int32 = -1

// Draw is one row of logits to turn into a token.
type Draw struct {
	Row      []float32 // [vocabulary]; the stages change it in place, unless shared
	shared   bool      // other draws read row too
	Params   Params
	ID       int32   // the token to report on, or Sampled
	Position int     // of the token in its sequence
	Tokens   []int32 // all tokens before it, when Params.LooksBack
	Prompt   int     // of them belong to the prompt
	Vocab    int     // tokens that Params.Constraint knows, of which Row may have the first ones alone; 0: as many as Row has
	next     int     // index of the next draw from row; 0: none

	Token Token // the result
	Err   error // or why there is none
}
