package report

import (
	"strings"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// TokenLogprob is a token of an answer as chats and responses list it.
type TokenLogprob struct {
	alternative
	Top []alternative `json:"top_logprobs"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// NewTokenLogprob lists a token.
func NewTokenLogprob(t *tts.Token) TokenLogprob {
	c := TokenLogprob{newAlternative(t.Bytes, t.Logprob), make([]alternative, len(t.Top))}
	for j, a := range t.Top {
		c.Top[j] = newAlternative(a.Bytes, a.Logprob)
	}
	return c
}

func newAlternative(piece []byte, logprob float32) alternative {
	return alternative{Token: strings.ToValidUTF8(string(piece), "\ufffd"), Logprob: jsonwrite.Finite(logprob), Bytes: jsonwrite.ByteList(piece)}
}
