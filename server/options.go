package server

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jobs"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Options is the configuration of a server: the `server:` section of config.yaml, and what its owner hands it.
type Options struct {
	Exposure
	Bounds
	Timeouts
	Searches
	Reporting

	Jobs            jobs.Options `yaml:"-"`                // files and batches: the `jobs:` section
	Strict          bool         `yaml:"strict"`           // refuse unknown request fields instead of logging them once
	ReasoningFormat string       `yaml:"reasoning_format"` // of chats that name none: ReasoningAuto or ReasoningNone

	credentials []admission.Credential `yaml:"-"` // that Validate has found
}

// Exposure says who reaches the server, and how.
type Exposure struct {
	Addr        string   `yaml:"addr"`          // address and port
	TLSCert     string   `yaml:"tls_cert"`      // PEM file; with tls_key, serve HTTPS
	TLSKey      string   `yaml:"tls_key"`       // PEM file
	APIKeys     []string `yaml:"api_keys"`      // accepted bearer keys
	APIKeysFile string   `yaml:"api_keys_file"` // a file of them, with names; with no keys at all none is needed
	CORSOrigins []string `yaml:"cors_origins"`  // origins, besides the server's own, whose pages may call; "*" for all
	// AllowedHosts are names by which the server may be called, besides the names of
	// this machine; "*" for all. With none, a server that listens on this
	// machine alone answers to no other name, and any other server to all. Pages
	// under these names are the server's own.
	AllowedHosts []string `yaml:"allowed_hosts"`
	// DebugAddr is another address, of plain http without keys, for what an operator looks at:
	// requests, engines, metrics and profiles; empty: none.
	DebugAddr string `yaml:"debug_addr"`
}

// Bounds says how much clients may ask for.
type Bounds struct {
	MaxBody           int64 `yaml:"max_body"`            // bytes of a request body
	MaxMemory         int64 `yaml:"max_memory"`          // bytes that all requests hold together; more get 429
	MaxConnections    int   `yaml:"max_connections"`     // open connections; more wait to be accepted; 0: no limit
	MaxRequests       int   `yaml:"max_requests"`        // requests being answered or waiting; more get 429
	MaxChoices        int   `yaml:"max_choices"`         // choices of a request: n times its prompts
	RequestsPerMinute int   `yaml:"requests_per_minute"` // a key that has no limit of its own; 0: no limit
	TokensPerMinute   int   `yaml:"tokens_per_minute"`   // likewise, prompt and completion; 0: no limit
}

// Timeouts says how long each part of an answer may take.
type Timeouts struct {
	HeaderTimeout  time.Duration `yaml:"header_timeout"`  // to receive a request's headers
	BodyTimeout    time.Duration `yaml:"body_timeout"`    // to receive a request's body
	IdleTimeout    time.Duration `yaml:"idle_timeout"`    // until an unused connection is closed
	WriteTimeout   time.Duration `yaml:"write_timeout"`   // for a client to take one piece of an answer
	RequestTimeout time.Duration `yaml:"request_timeout"` // for a whole answer; 0: no limit
	KeepAlive      time.Duration `yaml:"keep_alive"`      // between keep-alive chunks on a silent stream
	LameDuck       time.Duration `yaml:"lame_duck"`       // at shutdown, between the first 503 and the listener's end
	DrainTimeout   time.Duration `yaml:"drain_timeout"`   // at shutdown, for running requests to end; the lame-duck time is part of it
}

// Searches says which searches requests may ask for. What has no key is the `search:` section's.
type Searches struct {
	Presets        map[string]string `yaml:"presets"`         // names that may follow a model's and a "+" → the search they ask for
	DefaultScaling string            `yaml:"default_scaling"` // the search of requests that ask for none; empty: none

	Limits     scaling.Limits        `yaml:"-"`
	Scorers    map[string]tts.Scorer `yaml:"-"` // services that judge candidates
	Profiles   []*profile.Profile    `yaml:"-"` // ahead of the embedded models'
	Alternates []string              `yaml:"-"` // models of which any may answer a request with a quality for one of them
}

// Reporting says what the server tells of itself.
type Reporting struct {
	Debug bool `yaml:"debug"` // serve /debug/state
	// CountRequests has vllm:num_requests_* count requests: a search counts one, not its
	// sequences.
	CountRequests bool `yaml:"count_requests"`

	Log       zerolog.Logger       `yaml:"-"`
	LogLines  *LogLines            `yaml:"-"` // of Log, for GET /debug/logs; nil: none are shown
	Tracer    trace.TracerProvider `yaml:"-"` // of spans; nil: nothing is traced
	Documents fs.FS                `yaml:"-"` // of the repository, shown under /docs; nil: none
	Version   string               `yaml:"-"` // of the program, for GET /version
}

// DefaultOptions serves this machine alone, without keys.
func DefaultOptions() Options {
	return Options{
		Exposure: Exposure{Addr: "127.0.0.1:8080"},
		Bounds:   Bounds{MaxBody: 8 << 20, MaxMemory: 256 << 20, MaxConnections: 4096, MaxRequests: 256, MaxChoices: 128},
		Timeouts: Timeouts{
			HeaderTimeout:  10 * time.Second,
			BodyTimeout:    60 * time.Second,
			IdleTimeout:    2 * time.Minute,
			WriteTimeout:   30 * time.Second,
			RequestTimeout: 10 * time.Minute,
			KeepAlive:      10 * time.Second,
			LameDuck:       5 * time.Second,
			DrainTimeout:   25 * time.Second,
		},
		Searches: Searches{
			Presets: map[string]string{"bon8": "bon8", "sc8": "sc8", "sc16": "sc16", "cert8": "cert8", "beam16x4": "beam16x4"},
			Limits:  scaling.DefaultLimits(),
		},
		Reporting:       Reporting{Log: zerolog.Nop()},
		ReasoningFormat: openai.ReasoningAuto,
		Jobs:            jobs.DefaultOptions(),
	}
}

// NeedsKey tells whether clients must show a key.
func (o *Options) NeedsKey() bool { return len(o.APIKeys) > 0 || o.APIKeysFile != "" }

// Validate reports everything that is wrong with the options, joined.
func (o *Options) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("server."+format, args...))
		}
	}
	_, _, err := net.SplitHostPort(o.Addr)
	fault(err != nil, "addr: %q is not of the form host:port", o.Addr)
	if o.DebugAddr != "" {
		_, _, err := net.SplitHostPort(o.DebugAddr)
		fault(err != nil, "debug_addr: %q is not of the form host:port", o.DebugAddr)
		fault(o.DebugAddr == o.Addr && !strings.HasSuffix(o.Addr, ":0"), "debug_addr: %q is addr too", o.DebugAddr)
	}
	fault((o.TLSCert == "") != (o.TLSKey == ""), "tls_cert: set tls_key too, or neither")
	if o.TLSCert != "" && o.TLSKey != "" {
		_, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		fault(err != nil, "tls_cert: %v", err)
	}
	for i, k := range o.APIKeys {
		fault(k == "", "api_keys[%d]: is empty", i)
	}
	o.credentials, err = o.readKeys()
	fault(err != nil, "api_keys_file: %w", err)
	for i, origin := range o.CORSOrigins {
		err := error(nil)
		if origin != anyOrigin {
			err = http.NewCrossOriginProtection().AddTrustedOrigin(origin)
		}
		fault(err != nil, "cors_origins[%d]: %q is not an origin such as https://chat.example: %v", i, origin, err)
	}
	for i, name := range o.AllowedHosts {
		_, err := netip.ParseAddr(name) // IPv6 has colons
		fault(name == "" || strings.ContainsAny(name, "/:@ ") && err != nil, "allowed_hosts[%d]: %q is not a host name without scheme and port", i, name)
	}
	for _, n := range []struct {
		key       string
		n, lo, hi int64
	}{
		{"max_body", o.MaxBody, 1, mostBody},
		{"max_requests", int64(o.MaxRequests), 1, 1 << 16},
		{"max_connections", int64(o.MaxConnections), 0, 1 << 20},
		{"max_choices", int64(o.MaxChoices), 1, 1 << 12},
		{"requests_per_minute", int64(o.RequestsPerMinute), 0, admission.MostRequests},
		{"tokens_per_minute", int64(o.TokensPerMinute), 0, admission.MostTokens},
	} {
		fault(n.n < n.lo || n.n > n.hi, "%s: %d is outside %d..%d", n.key, n.n, n.lo, n.hi)
	}
	fault(o.MaxMemory < o.leastMemory(), "max_memory: %d is less than the %d that requests of max_body bytes and max_choices choices need", o.MaxMemory, o.leastMemory())
	fault(o.MaxMemory > mostMemory, "max_memory: %d is more than %d", o.MaxMemory, mostMemory)
	fault(o.ReasoningFormat != openai.ReasoningAuto && o.ReasoningFormat != openai.ReasoningNone, "reasoning_format: %q is neither auto nor none", o.ReasoningFormat)
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
		{"lame_duck", o.LameDuck, true},
		{"drain_timeout", o.DrainTimeout, true},
	} {
		fault(d.d < 0 || d.d == 0 && !d.zero, "%s: %v is too short", d.key, d.d)
		fault(d.d > mostTimeout, "%s: %v is longer than %v", d.key, d.d, mostTimeout)
	}
	fault(o.LameDuck > o.DrainTimeout, "lame_duck: %v is longer than drain_timeout, %v, of which it is a part", o.LameDuck, o.DrainTimeout)
	if _, err := o.plans(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.defaultPlan(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// limits returns the limits of keys that have none of their own.
func (o *Options) limits() admission.Limits {
	return admission.Limits{Requests: o.RequestsPerMinute, Tokens: o.TokensPerMinute}
}

// readKeys returns the keys that are configured. Keys of the file, which have limits, come first.
func (o *Options) readKeys() (list []admission.Credential, err error) {
	if o.APIKeysFile != "" {
		list, err = admission.ReadKeys(o.APIKeysFile, o.limits())
	}
	for _, k := range o.APIKeys {
		list = append(list, admission.Credential{Hash: sha256.Sum256([]byte(k)), Limits: o.limits()})
	}
	return list, err
}

// mostBody bounds Options.MaxBody: bodies lie in memory. mostMemory is more than any
// machine has.
const (
	mostBody   int64 = 1 << 30
	mostMemory int64 = 1 << 50
)

// leastMemory returns what the largest body and the most choices need.
func (o *Options) leastMemory() int64 {
	return (api.MostFactor*o.MaxBody + perRequest + perChoice*int64(o.MaxChoices)) * 4 / 3 // the last quarter is for small ones
}

// mostTimeout is longer than anybody waits.
const mostTimeout = 7 * 24 * time.Hour

// plans returns the presets as plans. One that asks for more than Limits allow is no
// fault here: it is not listed, and refused when a request asks for it.
func (o *Options) plans() (map[string]scaling.Plan, error) {
	plans := make(map[string]scaling.Plan)
	for _, name := range slices.Sorted(maps.Keys(o.Presets)) {
		p, err := scaling.Parse(o.Presets[name])
		if err == nil {
			err = p.Validate(o.Limits)
		}
		if err != nil && scaling.CodeOf(err) != scaling.CodeSearchLimit {
			return nil, fmt.Errorf("server.presets.%s: %w", name, err)
		}
		plans[name] = p
	}
	return plans, nil
}

// defaultPlan returns the search of requests that ask for none; nil: none.
func (o *Options) defaultPlan() (*scaling.Plan, error) {
	if o.DefaultScaling == "" {
		return nil, nil
	}
	p, err := scaling.Parse(o.DefaultScaling)
	if err == nil {
		err = p.Validate(o.Limits)
	}
	if err != nil {
		return nil, fmt.Errorf("server.default_scaling: %w", err)
	}
	return &p, nil
}

// How many bytes a request holds. A test measures what is made of bodies.
const (
	perRequest = 16 << 10 // whatever it asks
	perChoice  = 16 << 10 // of the answer
	longBody   = 64 << 10 // of a body: parsing longer ones takes a turn of cpulimit
)

// anyOrigin in Options.CORSOrigins, or AllowedHosts, stands for all.
const anyOrigin = "*"
