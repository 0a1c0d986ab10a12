package cli

import (
	"cmp"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/usage"
)

// ServerFlags say which server a command asks.
type ServerFlags struct {
	URL, Key string
	former   string // --model-name
}

// Variables of the environment that --url and --api-key go before.
const (
	urlVariable = "LUTRA_URL"
	keyVariable = "LUTRA_API_KEY"
	keyOfOpenAI = "OPENAI_API_KEY" // for OpenAI's own host alone: other servers have no right to see it
)

// Register defines the flags. what says what the URL is for; address is its default.
func (s *ServerFlags) Register(f *pflag.FlagSet, what, address string) {
	f.StringVar(&s.URL, "url", address, what+" at this API base `URL` (default also from "+urlVariable+")")
	f.StringVar(&s.Key, "api-key", "", "bearer `KEY` for the server (default: "+keyVariable+")")
}

// Complete takes from the environment what the flags leave open. An empty --url means
// no server, whatever the environment says.
func (s *ServerFlags) Complete(f *pflag.FlagSet) error {
	from := "--url"
	if address := os.Getenv(urlVariable); address != "" && !f.Changed("url") {
		s.URL, from = address, urlVariable
	}
	if s.URL == "" {
		if f.Changed("api-key") {
			return usage.Errorf("--api-key is for --url")
		}
		return nil
	}
	address, err := apiclient.Address(s.URL)
	if err != nil {
		return usage.Errorf("%s: %w", from, err)
	}
	if s.URL = address; !f.Changed("api-key") {
		s.Key = os.Getenv(keyVariable)
		if u, err := url.Parse(address); err == nil && u.Scheme == "https" && u.Hostname() == "api.openai.com" {
			s.Key = cmp.Or(s.Key, os.Getenv(keyOfOpenAI))
		}
	}
	return nil
}

// Names returns the server's models that --model asks for.
func (s *ServerFlags) Names(f *pflag.FlagSet) ([]string, error) {
	names, err := f.GetStringArray("model")
	if len(names) == 0 {
		names = []string{cmp.Or(s.former, apiclient.DefaultModel)}
	}
	return names, err
}

// formerModel is the name that --model had together with --url. It stays for a version.
const formerModel = "model-name"

// registerFormer defines that name.
func (s *ServerFlags) registerFormer(f *pflag.FlagSet) {
	f.StringVar(&s.former, formerModel, "", "model to ask for with --url")
	f.Lookup(formerModel).Hidden = true
}
