package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
)

// ErrNoRequest says that a receipt holds the hash of its request alone, and that the body
// is wanted.
var ErrNoRequest = errors.New("the receipt holds no request, but its hash: give the request's body too")

// Body returns the request's body: the receipt's own, or the one given where it holds but its
// hash.
func (r *Receipt) Body(given []byte) ([]byte, error) {
	switch {
	case given == nil && r.Request == "":
		return nil, ErrNoRequest
	case given == nil:
		return []byte(r.Request), nil
	case sum(given) != r.Hash:
		return nil, fmt.Errorf("the body's SHA-256 is %s, the receipt's request_sha256 %s: it is another request", sum(given), r.Hash)
	}
	return given, nil
}

// Repeat turns the request's body into one that asks for the same answer, with a receipt of hashes alone if r is
// one. It sets the seed and search that were in force, and no stream. A name that is not empty replaces the
// model's; scales that are not nil replace its adapters'.
func (r *Receipt) Repeat(body []byte, model string, scales []Scale) ([]byte, error) {
	f, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	fields := map[string]json.RawMessage{}
	for _, name := range f.Unread() {
		fields[name] = f.Raw(name)
	}
	delete(fields, "stream")
	delete(fields, "stream_options")
	put := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // numbers and texts, and a plan that has been read
		}
		fields[name] = text
	}
	put("seed", r.Sampling.Seed)
	put("receipt", true)
	switch best := string(fields["best_of"]); {
	case r.Search != nil:
		put("test_time_scaling", r.Search.Plan)
	case best == "" || best == "null" || best == "1":
		put("test_time_scaling", "none")
	}
	switch {
	case model != "":
		put("model", model)
	case r.Search != nil && r.Search.Chosen: // it may be another than the request names
		put("model", r.Model.Name)
	}
	if scales != nil {
		delete(fields, "lora")
	}
	if len(scales) > 0 {
		put("lora", scales)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(fields); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Scale is the scale of a model's adapter with the number ID, in the form of requests.
type Scale struct {
	ID    int     `json:"id"`
	Scale float32 `json:"scale"`
}

// Switches returns the words after the model's name in the request that switch thinking,
// as in +nothink.
func (r *Receipt) Switches(body []byte) (words string) {
	f, err := parse(body)
	if err != nil {
		return ""
	}
	name, _ := jsonread.Text(f.Raw("model"))
	for i, word := range strings.Split(name, "+") {
		if i > 0 && slices.Contains([]string{"think", "nothink"}, word) {
			words += "+" + word
		}
	}
	return words
}
