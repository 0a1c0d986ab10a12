package vllm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// judgement is a checked request for scores of responses.
type judgement struct {
	model     *registry.Model
	prompt    tts.Prompt
	part      tts.Part // the field that it came in
	responses []string
	aggregate scaling.Aggregate
	ratings   []reward.Rating // once they are there
}

// rewards reads POST /v1/rewards, of Lutra's own: a reward model's scores of given responses
// to one prompt.
func rewards(c *api.Call) (*api.Reading, error) {
	var asked string
	m, err := c.Reader(func(r *registry.Registry, name string) (*registry.Model, error) {
		asked = name
		return r.Judge(name)
	}, registry.TaskReward)
	if err != nil {
		return nil, err
	}
	j := &judgement{model: m, aggregate: scaling.AggregateLast, part: tts.PartMessages}
	if m.Reward == nil {
		return nil, api.Invalid(jsonread.CodeValue, "model", "The model '%s' is not a reward model.", jsonread.Brief(asked))
	}
	reader{fields.Reader{Fields: c.Body}}.judgement(j, c.MaxChoices)
	return &api.Reading{Read: j.rate, Write: j.write}, fields.Finish(c)
}

// rate returns the tokens that were read.
func (j *judgement) rate(ctx context.Context) (spent int, err error) {
	j.ratings, spent, err = j.model.Reward.Rate(ctx, &j.prompt, j.aggregate, j.responses...)
	var long *tts.ContextError
	if errors.As(err, &long) && long.Part == tts.PartMessages {
		err = &tts.ContextError{Limit: long.Limit, Prompt: long.Prompt, Part: j.part}
	}
	return spent, err
}

// judgement reads what to score, most responses at most.
func (f reader) judgement(j *judgement, most int) {
	switch {
	case f.Has("messages") && f.Has("prompt"):
		f.Fail(jsonread.CodeValue, "prompt", "it cannot be given together with 'messages'.")
	case f.Has("prompt"): // is what the user says
		var text string
		f.Text("prompt", &text)
		j.part = tts.PartPrompt
		j.prompt.Messages = []template.Message{{Role: fields.RoleUser, Content: text}}
	case f.Has("messages"):
		if j.prompt, _ = f.Conversation(); j.prompt.Ending == tts.ContinueFinalMessage {
			f.Fail(jsonread.CodeValue, "messages", "the last one is the assistant's; give it as a response.")
		}
	default:
		f.Fail(jsonread.CodeMissing, "messages", "either messages or a prompt are required.")
	}
	items, _ := f.List("responses", most)
	if len(items) == 0 {
		f.Fail(jsonread.CodeMissing, "responses", "a list of at least one response is required.")
	}
	for i, raw := range items {
		name := fmt.Sprintf("responses[%d]", i)
		response, ok := jsonread.Text(raw)
		if !ok {
			f.WrongType(name, "a string", raw)
		} else if strings.TrimSpace(response) == "" {
			f.Fail(jsonread.CodeValue, name, "it is blank.")
		}
		j.responses = append(j.responses, response)
	}
	aggregate := string(j.aggregate)
	f.String("aggregate", &aggregate)
	j.aggregate = scaling.Aggregate(aggregate)
	if err := j.aggregate.Validate(); err != nil {
		f.Fail(jsonread.CodeValue, "aggregate", "%v.", err)
	}
	f.Bookkeeping()
}

// rewardList is the answer to a request for scores.
type rewardList struct {
	Object string           `json:"object"`
	Model  string           `json:"model"`
	Data   []rewardItem     `json:"data"`
	Usage  report.ReadUsage `json:"usage"`
}

// rewardItem is the score of one response.
type rewardItem struct {
	Object     string    `json:"object"`
	Index      int       `json:"index"`
	Score      float64   `json:"score"`
	StepScores []float64 `json:"step_scores"`
	Steps      []extent  `json:"steps"`
}

// extent is where a solution step is in its response, in characters.
type extent struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// write writes the scores, one response after the other.
func (j *judgement) write(p *jsonwrite.Reply, spent int) {
	list := rewardList{Object: "list", Model: j.model.Name, Data: []rewardItem{}, Usage: report.ReadUsage{Prompt: spent, Total: spent}}
	p.Filled(list, "data", len(j.ratings), func(i int) { p.Value(newRewardItem(i, j.responses[i], &j.ratings[i])) })
}

// newRewardItem returns the score of one response.
func newRewardItem(i int, text string, r *reward.Rating) rewardItem {
	one := rewardItem{Object: "reward", Index: i, Score: jsonwrite.Number(r.Score), StepScores: make([]float64, len(r.Steps)), Steps: make([]extent, len(r.Steps))}
	bytes, runes := 0, 0
	at := func(end int) int {
		runes += utf8.RuneCountInString(text[bytes:end])
		bytes = end
		return runes
	}
	for k, s := range r.Steps {
		one.StepScores[k] = jsonwrite.Number(r.StepScores[k])
		one.Steps[k].Start = at(s.Start)
		one.Steps[k].End = at(s.End)
	}
	return one
}
