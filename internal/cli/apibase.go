package cli

import (
	"net/url"
	"strings"
)

// apiBase completes what people write for an API's base URL: an address
// without a path, http://host:8080, means the usual /v1 there.
func apiBase(s string) string {
	s = strings.TrimSuffix(s, "/")
	if u, err := url.Parse(s); err == nil && u.Host != "" && u.Path == "" && u.RawQuery == "" {
		return s + "/v1"
	}
	return s
}
