// Package anthropic is the JSON of Anthropic's Messages API: fields to a tts.Request,
// events to messages and their events.
package anthropic

import (
	"net/http"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
)

// Protocol returns the API. Its clients are known by a path that is its own, or by a header
// that all of them send.
func Protocol() api.Protocol {
	return api.Protocol{
		Owns: func(r *http.Request) bool {
			return r.URL.Path == "/v1/messages" || strings.HasPrefix(r.URL.Path, "/v1/messages/") || r.Header.Get("Anthropic-Version") != ""
		},
		Failure:  failure,
		Rates:    rates,
		IDHeader: "Request-Id",
		Routes: []api.Route{
			{Path: "/api/hello", Open: true, Answer: hello},
			{Path: "/v1/messages", Factor: api.ChatFactor, Ask: messages},
			{Path: "/v1/messages/count_tokens", Factor: api.TemplateFactor, Answer: countTokens},
			{Path: "/v1/models", Answer: listModels},
			{Path: "/v1/models/*", Answer: showModel},
		},
	}
}

// messages reads POST /v1/messages.
func messages(c *api.Call) (*api.Ask, error) {
	a, err := fields.Generator(c)
	if err != nil {
		return nil, err
	}
	f, req := c.Body, &tts.Request{}
	calling, edits, named := readMessage(f, req, a.Model.Model)
	a.Model.Switch(&req.Prompt)
	report := fields.Reader{Fields: c.Body}.Scale(c, a, req, named)
	f.Bool("stream", &a.Stream)
	if err := fields.Finish(c); err != nil {
		return nil, err
	}
	applied, err := edits.apply(&req.Prompt, a.Counter(c.Context()))
	a.Requests, a.Filters = []*tts.Request{req}, append(a.Filters, a.Model.Model.Apart(calling, req.N)...)
	a.Encoder = newEncoder(c, a.Name, applied, report)
	return a, err
}

// countTokens answers POST /v1/messages/count_tokens.
func countTokens(c *api.Call) error {
	a, err := c.Model()
	if err != nil {
		return err
	}
	f := c.Body
	var req tts.Request
	_, edits := readPrompt(f, &req, a.Model.Model)
	a.Model.Switch(&req.Prompt)
	f.Ignore("tool_choice", "cache_control", "output_config", "speed")
	if err := fields.Finish(c); err != nil {
		return err
	}
	applied, err := edits.apply(&req.Prompt, a.Counter(c.Context()))
	if err != nil {
		return err
	}
	n, err := a.Counter(c.Context())(&req.Prompt)
	if err != nil {
		return err
	}
	return c.JSON(newCount(n, applied))
}

// hello answers what Claude Code asks for to learn whether a server is there.
func hello(c *api.Call) error { return c.JSON(map[string]string{"message": "hello"}) }

// listModels answers GET /v1/models.
func listModels(c *api.Call) error {
	all, err := c.Cards()
	if err != nil {
		return err
	}
	cards := []card{}
	for _, m := range all {
		if m.Writes() {
			cards = append(cards, newCard(m.ID, time.Unix(m.Created, 0), m.MaxModelLen))
		}
	}
	return c.JSON(newList(cards))
}

// showModel answers GET /v1/models/{name}; a model that writes nothing has no card of this API.
func showModel(c *api.Call) error {
	return api.ShowModel(c, listModels, func(m registry.Card) any {
		if m.Writes() {
			return newCard(m.ID, time.Unix(m.Created, 0), m.MaxModelLen)
		}
		return m
	})
}

// card describes a model in lists.
type card struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"display_name"`
	CreatedAt string `json:"created_at"`
	Lifecycle string `json:"lifecycle"`
	MaxInput  int    `json:"max_input_tokens"`
	MaxTokens int    `json:"max_tokens"`
}

// newCard describes a model with so large a context, which prompt and answer share.
func newCard(name string, since time.Time, context int) card {
	return card{ID: name, Type: "model", Name: name, CreatedAt: since.UTC().Format(time.RFC3339), Lifecycle: "active", MaxInput: context, MaxTokens: context}
}

// list is all models as one page.
type list struct {
	Data  []card  `json:"data"`
	More  bool    `json:"has_more"` // never
	First *string `json:"first_id"`
	Last  *string `json:"last_id"`
}

// newList lists models.
func newList(cards []card) list {
	l := list{Data: cards}
	if n := len(cards); n > 0 {
		l.First, l.Last = &cards[0].ID, &cards[n-1].ID
	}
	return l
}
