package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
)

// Options is the configuration of a server: the `server:` section of
// config.yaml.
type Options struct {
	Addr        string   `yaml:"addr" koanf:"addr"`                 // address and port
	TLSCert     string   `yaml:"tls_cert" koanf:"tls_cert"`         // PEM file; with tls_key, serve HTTPS
	TLSKey      string   `yaml:"tls_key" koanf:"tls_key"`           // PEM file
	APIKeys     []string `yaml:"api_keys" koanf:"api_keys"`         // accepted bearer keys; none: everybody is welcome
	CORSOrigins []string `yaml:"cors_origins" koanf:"cors_origins"` // origins that browsers may call from; "*" for all
	Strict      bool     `yaml:"strict" koanf:"strict"`             // refuse unknown request fields instead of logging them once
	Debug       bool     `yaml:"debug" koanf:"debug"`               // serve /debug/state

	MaxBody           int64 `yaml:"max_body" koanf:"max_body"`                       // bytes of a request body
	MaxRequests       int   `yaml:"max_requests" koanf:"max_requests"`               // requests being answered or waiting; more are sent away with 429
	MaxChoices        int   `yaml:"max_choices" koanf:"max_choices"`                 // choices of a request: n times its prompts
	RequestsPerMinute int   `yaml:"requests_per_minute" koanf:"requests_per_minute"` // a key; 0: no limit
	TokensPerMinute   int   `yaml:"tokens_per_minute" koanf:"tokens_per_minute"`     // a key, prompt and completion; 0: no limit

	HeaderTimeout  time.Duration `yaml:"header_timeout" koanf:"header_timeout"`   // to receive a request's headers
	BodyTimeout    time.Duration `yaml:"body_timeout" koanf:"body_timeout"`       // to receive a request's body
	IdleTimeout    time.Duration `yaml:"idle_timeout" koanf:"idle_timeout"`       // until an unused connection is closed
	WriteTimeout   time.Duration `yaml:"write_timeout" koanf:"write_timeout"`     // for a client to take one piece of an answer
	RequestTimeout time.Duration `yaml:"request_timeout" koanf:"request_timeout"` // for a whole answer; 0: no limit
	KeepAlive      time.Duration `yaml:"keep_alive" koanf:"keep_alive"`           // between signs of life on a silent stream
	DrainTimeout   time.Duration `yaml:"drain_timeout" koanf:"drain_timeout"`     // for running requests to end at shutdown

	Log zerolog.Logger `yaml:"-" koanf:"-"`
}

// DefaultOptions serves this machine alone, without keys.
func DefaultOptions() Options {
	return Options{
		Addr:           "127.0.0.1:8080",
		MaxBody:        8 << 20,
		MaxRequests:    256,
		MaxChoices:     128,
		HeaderTimeout:  10 * time.Second,
		BodyTimeout:    60 * time.Second,
		IdleTimeout:    2 * time.Minute,
		WriteTimeout:   30 * time.Second,
		RequestTimeout: 10 * time.Minute,
		KeepAlive:      10 * time.Second,
		DrainTimeout:   30 * time.Second,
		Log:            zerolog.Nop(),
	}
}

// Validate reports everything that is wrong with the options, joined.
func (o *Options) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("server."+format, args...))
		}
	}
	_, _, err := net.SplitHostPort(o.Addr)
	fault(err != nil, "addr: %q is no host:port", o.Addr)
	fault((o.TLSCert == "") != (o.TLSKey == ""), "tls_cert and server.tls_key: one is no use without the other")
	if o.TLSCert != "" && o.TLSKey != "" {
		_, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		fault(err != nil, "tls_cert: %v", err)
	}
	for i, k := range o.APIKeys {
		fault(k == "", "api_keys[%d] is empty", i)
	}
	fault(o.MaxBody < 1, "max_body: %d is less than 1", o.MaxBody)
	fault(o.MaxRequests < 1, "max_requests: %d is less than 1", o.MaxRequests)
	fault(o.MaxChoices < 1, "max_choices: %d is less than 1", o.MaxChoices)
	fault(o.RequestsPerMinute < 0, "requests_per_minute: %d is negative", o.RequestsPerMinute)
	fault(o.TokensPerMinute < 0, "tokens_per_minute: %d is negative", o.TokensPerMinute)
	for _, d := range []struct {
		key  string
		d    time.Duration
		zero bool // allowed
	}{
		{"header_timeout", o.HeaderTimeout, false},
		{"body_timeout", o.BodyTimeout, false},
		{"idle_timeout", o.IdleTimeout, false},
		{"write_timeout", o.WriteTimeout, false},
		{"request_timeout", o.RequestTimeout, true},
		{"keep_alive", o.KeepAlive, false},
		{"drain_timeout", o.DrainTimeout, true},
	} {
		fault(d.d < 0 || d.d == 0 && !d.zero, "%s: %v is too short", d.key, d.d)
	}
	return errors.Join(errs...)
}
