package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Options says where a server of tools is.
type Options struct {
	URL     string            `yaml:"url"`     // http(s)://, its endpoint of the Streamable HTTP transport
	Headers map[string]string `yaml:"headers"` // of each request to it, such as Authorization
	Timeout time.Duration     `yaml:"timeout"` // for it to send the first or a further piece of an answer; 0: standardTimeout
}

// Bounds of a configuration.
const (
	mostServers = 32
	mostHeaders = 32
	mostHeader  = 8 << 10 // bytes of a header's value
)

// standardTimeout is as long as clients of the protocol's own library wait for an answer.
const standardTimeout = time.Minute

// longestTimeout bounds Options.Timeout.
const longestTimeout = time.Hour

// names are those of servers, which become parts of tools' names.
var names = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

// Validate reports the first fault of servers by name; it begins with the server's and a colon, or
// with the option's.
func Validate(servers map[string]Options) error {
	if len(servers) > mostServers {
		return fmt.Errorf(": %d are more than %d", len(servers), mostServers)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if !names.MatchString(name) {
			return fmt.Errorf(": %.64q is not a name of 1 to 32 letters, digits, _ and -", name)
		}
		o := servers[name]
		if err := o.validate(); err != nil {
			return fmt.Errorf(".%s.%w", name, err)
		}
	}
	return nil
}

func (o *Options) validate() error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return errors.New("url: must be http://HOST/PATH or https://HOST/PATH; put credentials under headers, not into the URL")
	case o.Timeout < 0 || o.Timeout > longestTimeout:
		return fmt.Errorf("timeout: %v is outside 0s..%v", o.Timeout, longestTimeout)
	case len(o.Headers) > mostHeaders:
		return fmt.Errorf("headers: %d are more than %d", len(o.Headers), mostHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		if value := o.Headers[name]; !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || len(value) > mostHeader {
			return fmt.Errorf("headers: %.64q is no header, or its value has more than %d bytes or control characters", name, mostHeader)
		}
	}
	return nil
}
