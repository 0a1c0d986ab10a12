package server

import "github.com/lutra-lm/lutra/server/jsonread"

// fields are a request's, under the names that OpenAI and other servers give them.
type fields struct{ *jsonread.Fields }
