// Package fields reads the fields that requests of several APIs have: how tokens are sampled,
// conversations, tools, formats of answers, and the plan of a search.
//
//	jsonread.Fields ──Reader──▶ tts.Request, api.Ask
//
// bounds.go lists what a request may hold. What answers report is in server/report.
package fields

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// Reader reads fields under the names that OpenAI and other servers use: what an API asks of a request's body.
type Reader struct{ *jsonread.Fields }

// Bookkeeping checks fields that clients keep for themselves.
func (f Reader) Bookkeeping() {
	var s string
	f.String("user", &s)
	readMetadata(f.Fields)
}

// readMetadata checks the strings that clients store with a request.
func readMetadata(f *jsonread.Fields) {
	raw, ok := f.Take("metadata")
	if !ok {
		return
	}
	if jsonread.Kind(raw) != "an object" {
		f.WrongType("metadata", "an object of strings", raw)
		return
	}
	n := 0
	for written, value := range jsonread.Members(raw) {
		name, _ := jsonread.Text(written)
		s, ok := jsonread.Text(value)
		n++
		switch {
		case !ok:
			f.WrongType("metadata", "an object of strings", value)
		case n > MaxMetadata:
			f.Fail(jsonread.CodeValue, "metadata", "at most %d entries are allowed.", MaxMetadata)
		case len(name) > MaxMetadataName || len(s) > MaxMetadataValue:
			f.Fail(jsonread.CodeValue, "metadata", "names have at most %d bytes and values %d.", MaxMetadataName, MaxMetadataValue)
		}
		if f.Err != nil {
			return
		}
	}
}

// readScalingInMetadata returns the string in a request's metadata that asks for scaling. What
// else is there, or wrong, is for those APIs to see that have metadata.
func readScalingInMetadata(f *jsonread.Fields) (plan string) {
	raw := f.Raw("metadata")
	if jsonread.Kind(raw) != "an object" {
		return ""
	}
	for written, value := range jsonread.Members(raw) {
		if name, _ := jsonread.Text(written); name == api.ScalingField {
			plan, _ = jsonread.Text(value)
		}
	}
	if len(plan) > MaxMetadataValue {
		return ""
	}
	return plan
}
