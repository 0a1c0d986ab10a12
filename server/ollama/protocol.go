// Package ollama is the JSON of Ollama's API: fields to a tts.Request, events to lines
// of JSON.
package ollama

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
)

// Protocol returns the API, whose paths are its own.
func Protocol() api.Protocol {
	p := api.Protocol{
		Owns:    func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") },
		Failure: failure,
		Waiting: func(c *api.Call) any {
			return (&encoder{model: c.Name(), chat: c.URL.Path == chatPath}).KeepAlive()
		},
		Routes: []api.Route{
			{Path: "/api/version", Answer: func(c *api.Call) error { return c.JSON(map[string]string{"version": version}) }},
			{Path: "/api/tags", Answer: list},
			{Path: "/api/ps", Answer: listLoaded},
			{Path: "/api/show", Factor: api.TemplateFactor, Answer: show},
			{Path: chatPath, Factor: api.ChatFactor, Ask: func(c *api.Call) (*api.Ask, error) { return ask(c, true) }},
			{Path: "/api/generate", Factor: api.CompletionFactor, Ask: func(c *api.Call) (*api.Ask, error) { return ask(c, false) }},
			{Path: "/api/embed", Factor: api.EmbeddingFactor, Read: embed},
			{Path: "/api/embeddings", Factor: api.EmbeddingFactor, Read: embeddings},
			{Method: http.MethodDelete, Path: "/api/delete", Answer: refused},
			{Method: http.MethodHead, Path: blobs + "{digest}", Answer: blob},
			{Method: http.MethodPost, Path: blobs + "{digest}", Answer: blob},
		},
	}
	for _, what := range []string{"pull", "push", "create", "copy"} {
		p.Routes = append(p.Routes, api.Route{Method: http.MethodPost, Path: "/api/" + what, Answer: refused})
	}
	return p
}

// blobs is where clients look for the files of a model that they mean to create, and send them.
const blobs = "/api/blobs/"

// digests are names of such files.
var digests = regexp.MustCompile(`^sha256[:-][0-9a-fA-F]{64}$`)

// chatPath is where clients chat.
const chatPath = "/api/chat"

// ask reads POST /api/chat, or else /api/generate.
func ask(c *api.Call, chat bool) (*api.Ask, error) {
	if unloads(c) {
		return unload(c, chat)
	}
	a, err := fields.Generator(c)
	if err != nil {
		return nil, err
	}
	if err := keepAlive(c); err != nil {
		return nil, err
	}
	f, req := reader{c.Body}, &tts.Request{}
	var calling *tts.Calling
	var named sampling.Config
	if chat {
		calling, named = f.chat(req, a.Model.Model)
	} else {
		named = f.generate(req, a.Model.Model)
	}
	a.Model.Switch(&req.Prompt)
	e := &encoder{model: a.Name, chat: chat, logprobs: req.Sampling.Logprobs, begun: time.Now()}
	a.Stream, a.Lines = f.streaming(), true
	a.Requests, a.Filters, a.Encoder = []*tts.Request{req}, a.Model.Model.Apart(calling, req.N), e
	if req.Prompt.Messages == nil && req.Prompt.Text == "" { // models are loaded so; here they are
		a.Instead = e.said("load")
		return a, fields.Finish(c)
	}
	e.report = fields.Reader{Fields: c.Body}.Scale(c, a, req, named)
	if !chat && req.Prompt.Messages != nil {
		e.conversation = conversation(c, a, req)
	}
	return a, fields.Finish(c)
}

// conversation gives the tokens of a request's prompt and of an answer to it: those that
// the model would read for both.
func conversation(c *api.Call, a *api.Ask, req *tts.Request) func(text, reasoning string) []int32 {
	p := req.Prompt
	return func(text, reasoning string) []int32 {
		p.Messages = append(slices.Clone(p.Messages), template.Message{Role: fields.RoleAssistant, Content: text, ReasoningContent: reasoning})
		p.Ending = tts.NoGenerationPrompt
		prepared, err := a.Prepare(c.Context(), &p)
		if err != nil || c.Lease.Grow(api.PerID*int64(len(prepared.Tokens))) != nil {
			return nil // the answer stands without
		}
		return prepared.Tokens
	}
}

// list answers GET /api/tags: all models, in memory or not.
func list(c *api.Call) error {
	models, err := c.Models()
	if err != nil {
		return err
	}
	all, err := c.Cards()
	if err != nil {
		return err
	}
	cards := []card{}
	for _, one := range all {
		st, err := models.State(one.ID)
		if err == nil && one.Task != registry.TaskReward {
			cards = append(cards, newCard(one.ID, &st, time.Unix(one.Created, 0)))
		}
	}
	return c.JSON(map[string]any{"models": cards})
}

// listLoaded answers GET /api/ps: the models in memory.
func listLoaded(c *api.Call) error {
	models, err := c.Models()
	if err != nil {
		return err
	}
	cards := []card{}
	for _, st := range models.States() {
		if st.Model != nil && st.Model.Reward == nil && c.Key.May(models.Names(st.Source.Name)...) {
			cards = append(cards, newLoaded(&st))
		}
	}
	return c.JSON(map[string]any{"models": cards})
}

// show answers POST /api/show. It loads no model.
func show(c *api.Call) error {
	if former, ok := c.Body.Take("name"); ok && !c.Body.Has("model") {
		c.Body.Put("model", former)
	}
	var name string
	c.Body.String("model", &name)
	c.Body.Ignore("verbose")
	if err := fields.Finish(c); err != nil {
		return err
	}
	models, err := c.Known(name)
	if err != nil {
		return err
	}
	one, err := models.Card(name)
	if err != nil {
		return err
	}
	st, err := models.State(name)
	if err != nil {
		return err
	}
	return c.JSON(newShown(&st, time.Unix(one.Created, 0)))
}

// refused answers what would change the server's models.
func refused(c *api.Call) error {
	what, _, _ := strings.Cut(strings.TrimPrefix(c.URL.Path, "/api/"), "/")
	return &api.Fault{Status: http.StatusNotImplemented, Type: api.TypeInvalid, Code: jsonread.CodeUnsupported,
		Message: "This server's models are configured when it starts: it does not do " + what + "."}
}

// blob answers for a file of a model that is to be created: it is not there, and is refused
// before a byte of it is read.
func blob(c *api.Call) error {
	switch {
	case !digests.MatchString(strings.TrimPrefix(c.URL.Path, blobs)):
		return api.InvalidStatus(http.StatusBadRequest, jsonread.CodeValue, "digest", "invalid digest format")
	case c.Method == http.MethodHead:
		return api.InvalidStatus(http.StatusNotFound, "not_found", "digest", "blob not found")
	}
	return refused(c)
}

// embed reads POST /api/embed.
func embed(c *api.Call) (*api.Reading, error) {
	m, err := fields.Embedder(c)
	if err == nil {
		err = keepAlive(c)
	}
	if err != nil {
		return nil, err
	}
	r, vectors := fields.Embed(m, reader{c.Body}.embed(m.Embed.Width()), "input")
	read := r.Read
	var load time.Duration // until the model is there for the request
	r.Read = func(ctx context.Context) (int, error) {
		load = time.Since(c.Start)
		return read(ctx)
	}
	r.Write = func(p *jsonwrite.Reply, tokens int) {
		p.Raw(`{"model":`)
		p.Text(m.Name)
		p.Raw(`,"embeddings":`)
		p.List(len(*vectors), func(i int) { p.Floats((*vectors)[i]) })
		p.Raw(fmt.Sprintf(`,"total_duration":%d,"load_duration":%d,"prompt_eval_count":%d}`, time.Since(c.Start), load, tokens))
	}
	return r, fields.Finish(c)
}

// embeddings reads POST /api/embeddings, of older clients.
func embeddings(c *api.Call) (*api.Reading, error) {
	m, err := fields.Embedder(c)
	if err == nil {
		err = keepAlive(c)
	}
	if err != nil {
		return nil, err
	}
	r, vectors := fields.Embed(m, reader{c.Body}.embedPrompt(), "prompt")
	r.Write = func(p *jsonwrite.Reply, _ int) {
		p.Raw(`{"embedding":`)
		p.Floats(slices.Concat(*vectors...)) // of one, or of none
		p.Raw("}")
	}
	return r, fields.Finish(c)
}
