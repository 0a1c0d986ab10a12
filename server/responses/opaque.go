package responses

import (
	"encoding/base64"
	"strings"
)

// opaquePrefix marks texts that this server has handed out for clients to keep.
const opaquePrefix = "lutra1."

// opaque is a text as clients keep it without reading it: the thought of a reasoning
// item, or the summary of a compaction, which they send back. Any server of this
// version reads it. It is no secret: the client gets the same text in the open.
func opaque(text string) string {
	return opaquePrefix + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// readOpaque is the text that opaque was given; ok is false for texts of other servers.
func readOpaque(kept string) (text string, ok bool) {
	encoded, ok := strings.CutPrefix(kept, opaquePrefix)
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return strings.ToValidUTF8(string(raw), "\ufffd"), err == nil
}
