package llamacpp

import (
	"encoding/json"
	"net/http"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/tts"
)

// settings say how an answer is generated, under llama.cpp's names: the rows of sampling.Fields between others.
type settings struct {
	Predict int
	Seed    uint64
	Stop    []string
	Probs   int
	drawn   sampling.Params
}

func newSettings(req *tts.Request) settings {
	s := settings{Predict: req.Sampling.MaxTokens, Seed: req.Sampling.Seed, Stop: req.Stop, Probs: req.Sampling.TopLogprobs, drawn: req.Sampling}
	if s.Predict == 0 && !req.NoTokens {
		s.Predict = -1
	}
	return s
}

func (s settings) MarshalJSON() ([]byte, error) {
	stop := s.Stop
	if stop == nil {
		stop = []string{}
	}
	rest, err := json.Marshal(struct {
		Seed      uint64   `json:"seed"`
		Stop      []string `json:"stop"`
		MaxTokens int      `json:"max_tokens"`
		Keep      int      `json:"n_keep"`
		IgnoreEOS bool     `json:"ignore_eos"`
		Probs     int      `json:"n_probs"`
		Samplers  []string `json:"samplers"`
	}{s.Seed, stop, s.Predict, 0, s.drawn.IgnoreEOS, s.Probs, samplerNames()})
	if err != nil {
		return nil, err
	}
	out := []byte(`{"n_predict":`)
	predict, _ := json.Marshal(s.Predict)
	out = append(out, predict...)
	for i := range sampling.Fields {
		f := sampling.Fields[i]
		if f.Name == "repetition_penalty" {
			f.Name = "repeat_penalty"
		}
		out = f.Append(out, &s.drawn)
	}
	return append(append(out, ','), rest[1:]...), nil
}

func samplerNames() (names []string) {
	for _, s := range samplers {
		names = append(names, s.names[0])
	}
	return names
}

// slot is a place for a stream, as llama-server has them: here, of as many as advance in one step.
type slot struct {
	ID          int  `json:"id"`
	Context     int  `json:"n_ctx"`
	Speculative bool `json:"speculative"`
	Processing  bool `json:"is_processing"`
}

// defaultSettings hold where a request says nothing.
type defaultSettings struct {
	slot
	Params settings `json:"params"`
	Prompt string   `json:"prompt"`
}

// properties answer GET /props.
type properties struct {
	Settings     defaultSettings `json:"default_generation_settings"`
	Slots        int             `json:"total_slots"`
	Alias        string          `json:"model_alias"`
	Path         string          `json:"model_path"`
	Template     string          `json:"chat_template"`
	Capabilities map[string]bool `json:"chat_template_caps"`
	BOS          string          `json:"bos_token"`
	EOS          string          `json:"eos_token"`
	Modalities   modalities      `json:"modalities"`
	Build        string          `json:"build_info"`
	Sleeping     bool            `json:"is_sleeping"`
}

type modalities struct {
	Vision bool `json:"vision"`
	Audio  bool `json:"audio"`
}

// props answers GET /props: what the model of ?model= is, by default the first, and how it samples. The path of its file is
// nobody's business: it has the model's name.
func props(c *api.Call) error {
	name := c.URL.Query().Get("model")
	if c.URL.Query().Get("autoload") == "false" {
		models, err := c.Known(name)
		if err != nil {
			return err
		}
		if st, err := models.State(name); err != nil || st.Model == nil {
			return api.InvalidStatus(http.StatusServiceUnavailable, "model_not_loaded", "model", "The model is not in memory, and autoload=false asks not to load it.")
		}
	}
	m, err := adaptedModel(c)
	if err != nil {
		return err
	}
	req := &tts.Request{}
	m.Defaults(custom()).Apply(&req.Sampling)
	out := properties{Slots: m.Engine.Streams(), Alias: m.Name, Path: m.Name, Build: "lutra " + c.Version, Capabilities: map[string]bool{}}
	out.Settings = defaultSettings{slot: slot{Context: m.Context}, Params: newSettings(req)}
	if id, ok := m.Tokenizer.BOS(); ok {
		out.BOS = m.Tokenizer.Token(id)
	}
	if id, ok := m.Tokenizer.EOS(); ok {
		out.EOS = m.Tokenizer.Token(id)
	}
	if m.Template != nil {
		out.Template = m.Template.Source()
	}
	return c.JSON(out)
}

// slots answers GET /slots: which places are in use. What they compute is told to nobody. With ?fail_on_no_slot=1 it is 503
// where all are.
func slots(c *api.Call) error {
	m, err := adaptedModel(c)
	if err != nil {
		return err
	}
	busy, list := m.Engine.Stats().RunningRequests, make([]slot, m.Engine.Streams())
	if busy >= len(list) && c.URL.Query().Get("fail_on_no_slot") != "" {
		return api.InvalidStatus(http.StatusServiceUnavailable, "no_slot", "", "No slot is available.")
	}
	for i := range list {
		list[i] = slot{ID: i, Context: m.Context, Processing: i < busy}
	}
	return c.JSON(list)
}

// slotAction answers POST /slots/{id}: slots hold nothing here that could be saved, restored or erased, since the prefix cache
// is shared.
func slotAction(c *api.Call) error {
	c.Body.Ignore("filename")
	if err := fields.Finish(c); err != nil {
		return err
	}
	return api.InvalidStatus(http.StatusNotImplemented, "unsupported_action", "action",
		"Slots are neither saved, restored nor erased: all requests share one prefix cache, which needs no slot.")
}
