package tokenizer

import "strings"

// Plain reports whether a token is ordinary text: none that steers the model, and of
// the tokens that the file's author added only those of white space.
func (v *vocab) Plain(id int32) bool {
	if !v.valid(id) || v.kinds[id]&(control|unknown|endsTurn) != 0 {
		return false
	}
	return v.kinds[id]&userDefined == 0 || strings.TrimSpace(string(v.Piece(id))) == ""
}
