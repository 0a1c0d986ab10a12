package server

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
)

// switching is a template that shows whether thinking is on.
const switching = `{{ 'on' if enable_thinking is defined and enable_thinking else 'off' if enable_thinking is defined else 'unsaid' }}`

func TestTheNameOfAModelSwitchesThinking(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(switching)
	if err := f.Publish(registry.Served{Model: f.model, Aliases: []string{"mini"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ model, fields, want string }{
		{"toy", "", "unsaid"},
		{"toy+think", "", "on"},
		{"toy+nothink", "", "off"},
		{"mini+nothink", "", "off"},
		{"default+nothink", "", "off"},
		{"toy+nothink+sc8", "", "off"},
		{"toy+think+cert8", "", "on"},
		{"mini+sc8+think", "", "on"},
		{"toy+nothink", `,"enable_thinking":true`, "on"}, // the request itself counts
		{"toy+think", `,"chat_template_kwargs":{"enable_thinking":false}`, "off"},
	} {
		if got, _ := f.applied(`{"model":"` + c.model + `","messages":[` + asks + `]` + c.fields + `}`); got != c.want {
			t.Errorf("%s%s: %s, want %s", c.model, c.fields, got, c.want)
		}
	}
	for _, name := range []string{"toy+nothink+sc4", "toy+sc4+nothink", "default+think+sc4"} {
		applied, status, answer := f.askFor(name, "")
		if status != 200 || applied != "self_consistency;n=4" {
			t.Errorf("%s: %q, %d %s", name, applied, status, answer)
		}
	}
	cards := f.cards(t)
	for _, name := range []string{"toy+think", "toy+nothink"} {
		if c := cards[name]; c.Root != "toy" || c.Lutra == nil || !slices.Contains(c.Lutra.Presets, "sc8") {
			t.Errorf("the card of %s is %+v", name, c)
		}
	}
	for _, name := range []string{"toy+think+nothink", "toy+think+sc8+think", "toy+sc8+sc16", "toy+thinks", strings.Repeat("+think", 100)} {
		_, status, answer := f.askFor(name, "")
		wantError(t, name, status, answer, 404, "model_not_found", "model")
	}
	status2, _, answer2 := f.post("/v1/completions", `{"model":"toy+nothink","prompt":"a"}`)
	wantError(t, "a completion", status2, answer2, 400, jsonread.CodeValue, "model")
}

func TestAModelThatCannotSwitchThinkingHasNoSuchNames(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(template.ChatML)
	if err := f.Publish(registry.Served{Model: f.model}); err != nil {
		t.Fatal(err)
	}
	_, status, answer := f.askFor("toy+nothink", "")
	wantError(t, "toy+nothink", status, answer, 404, "model_not_found", "model")
	if _, ok := f.cards(t)["toy+think"]; ok {
		t.Error("it is listed")
	}
}

func TestAPresetNamedLikeAThoughtGoesFirst(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.Presets = map[string]string{"think": "sc3"} })
	f.withTemplate(switching)
	if err := f.Publish(registry.Served{Model: f.model}); err != nil {
		t.Fatal(err)
	}
	applied, status, answer := f.askFor("toy+think", "")
	if status != 200 || applied != "self_consistency;n=3" {
		t.Errorf("%d %s", status, answer)
	}
}

func TestTheNameSwitchesThinkingInEveryProtocol(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(`{% if enable_thinking is defined and not enable_thinking %}` + strings.Repeat("off ", 40) + `{% else %}on{% endif %}`)
	if err := f.Publish(registry.Served{Model: f.model}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, fields, count string }{
		{"/v1/chat/completions", `,"max_tokens":1`, "prompt_tokens"},
		{"/v1/messages", `,"max_tokens":1`, "input_tokens"},
		{"/v1/messages/count_tokens", "", "input_tokens"},
		{"/api/chat", `,"stream":false,"options":{"num_predict":1}`, "prompt_eval_count"},
	} {
		tokens := func(model string) int {
			status, _, answer := f.post(c.path, `{"model":"`+model+`","messages":[{"role":"user","content":"Hi"}]`+c.fields+`}`)
			if status != 200 {
				t.Fatalf("%s: %d %s", c.path, status, answer)
			}
			n := 0
			for _, m := range regexp.MustCompile(`"(?:cache_read_)?`+c.count+`":(\d+)`).FindAllSubmatch(answer, -1) {
				n += must(strconv.Atoi(string(m[1])))
			}
			return n
		}
		if off, on := tokens("toy+nothink"), tokens("toy+think"); off < on+20 {
			t.Errorf("%s: a prompt of %d tokens without thinking, of %d with it", c.path, off, on)
		}
	}
}
