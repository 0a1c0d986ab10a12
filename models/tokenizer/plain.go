package tokenizer

import "strings"

// Plain reports whether a token is ordinary text. Tokens that steer the model are not, and neither are tokens that
// the file's author added and that look like a mark, such as <tool_call> or [INST].
func (v *vocab) Plain(id int32) bool {
	if !v.valid(id) || v.kinds[id]&(control|unknown|endsTurn) != 0 {
		return false
	}
	text := v.tokens[id]
	mark := strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") || strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
	return v.kinds[id]&userDefined == 0 || !mark || len(text) < 3
}
