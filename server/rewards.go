package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/registry"
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
}

// rewards is POST /v1/rewards: a reward model's scores of given responses to
// one prompt.
func (s *Server) rewards(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	j, err := s.rewardRequest(openai.Fields{Fields: body})
	if err != nil {
		return err
	}
	rec := recordOf(r.Context())
	defer func() { rec.key.Spend(time.Now(), rec.Usage.Prompt) }()
	ctx := r.Context()
	ratings, spent, err := j.model.Reward.Rate(ctx, &j.prompt, j.aggregate, j.responses...)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		var long *tts.ContextError
		if errors.As(err, &long) && long.Part == tts.PartMessages {
			err = &tts.ContextError{Limit: long.Limit, Prompt: long.Prompt, Part: j.part}
		}
		return err
	}
	rec.Usage.Prompt = spent
	s.reply(ctx, w, func(p *jsonwrite.Reply) { writeRewards(p, j, ratings, spent) })
	return nil
}

// rewardRequest checks a request for scores.
func (s *Server) rewardRequest(f openai.Fields) (*judgement, error) {
	j := &judgement{aggregate: scaling.AggregateLast, part: tts.PartMessages}
	var name string
	f.String("model", &name)
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if j.model, err = s.judge(name); err != nil {
		return nil, err
	}
	switch {
	case f.Has("messages") && f.Has("prompt"):
		f.Fail(jsonread.CodeValue, "prompt", "it cannot be given together with 'messages'.")
	case f.Has("prompt"): // is what the user says
		var text string
		f.Text("prompt", &text)
		j.part = tts.PartPrompt
		j.prompt.Messages = []template.Message{{Role: openai.RoleUser, Content: text}}
	case f.Has("messages"):
		if j.prompt, _ = f.Conversation(); j.prompt.Ending == tts.EndOpen {
			f.Fail(jsonread.CodeValue, "messages", "the last one is the assistant's; give it as a response.")
		}
	default:
		f.Fail(jsonread.CodeMissing, "messages", "either messages or a prompt are required.")
	}
	items, _ := f.List("responses", s.opt.MaxChoices)
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
	return j, s.finish(f.Fields)
}

// judge finds the reward model that a request asks for: by default, the first.
func (s *Server) judge(name string) (*registry.Model, error) {
	models, err := s.registered()
	if err != nil {
		return nil, err
	}
	m, err := models.Judge(name)
	if err == nil && m.Reward == nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' is not a reward model.", jsonread.Brief([]byte(name)))
	}
	return m, err
}

// rewardList is the answer to a request for scores.
type rewardList struct {
	Object string       `json:"object"`
	Model  string       `json:"model"`
	Data   []rewardItem `json:"data"`
	Usage  rewardUsage  `json:"usage"`
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

// rewardUsage has no completion: all tokens are read.
type rewardUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// writeRewards writes the scores, one response after the other.
func writeRewards(p *jsonwrite.Reply, j *judgement, ratings []reward.Rating, spent int) {
	list := rewardList{Object: "list", Model: j.model.Name, Data: []rewardItem{}, Usage: rewardUsage{spent, spent}}
	p.Around(list, `"data":[]`, func() {
		p.Raw(`"data":`)
		p.List(len(ratings), func(i int) { p.Value(newRewardItem(i, j.responses[i], &ratings[i])) })
	})
}

// newRewardItem is the score of one response.
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
