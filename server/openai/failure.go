package openai

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// Envelope is the body of every error.
type Envelope struct {
	Error failure `json:"error"`
}

type failure struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Failure writes a fault as OpenAI's clients expect it.
func Failure(f *api.Fault) Envelope {
	return Envelope{failure{Message: f.Message, Type: f.Type, Param: jsonwrite.Optional(f.Param), Code: jsonwrite.Optional(f.Code)}}
}
