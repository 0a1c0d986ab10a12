package vllm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts/embed"
)

// rerank reads POST /v1/rerank, of Jina's, Cohere's and vLLM's clients.
func rerank(c *api.Call) (*api.Reading, error) {
	m, err := ranker(c)
	if err != nil {
		return nil, err
	}
	q := reader{fields.Reader{Fields: c.Body}}.ranking()
	pairs := make([]embed.Pair, len(q.Documents))
	for i, text := range q.Documents {
		pairs[i] = embed.Pair{Query: q.Query, Document: text}
	}
	r, scores := reading(m, pairs, func(e *embed.TextError) string {
		if e.Document {
			return fmt.Sprintf("documents[%d]", e.Index)
		}
		return "query"
	})
	r.Write = func(p *jsonwrite.Reply, read int) {
		order := make([]int, len(*scores))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare((*scores)[b], (*scores)[a]) })
		list := rankedList{ID: "rerank-" + c.ID, Object: "list", Model: m.Name, Results: []int{}, Usage: report.ReadUsage{Prompt: read, Total: read}}
		p.Filled(list, "results", q.Top, func(i int) {
			one := ranked{Index: order[i], Score: jsonwrite.Number((*scores)[order[i]])}
			if q.Repeat {
				one.Document = &passage{q.Documents[order[i]]}
			}
			p.Value(one)
		})
	}
	return r, fields.Finish(c)
}

// rankedList is the answer to a request for a ranking, but for its results.
type rankedList struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Model   string           `json:"model"`
	Results []int            `json:"results"`
	Usage   report.ReadUsage `json:"usage"`
}

// ranked is a document with its score.
type ranked struct {
	Index    int      `json:"index"`
	Score    float64  `json:"relevance_score"`
	Document *passage `json:"document,omitempty"`
}

type passage struct {
	Text string `json:"text"`
}

// score reads vLLM's POST /v1/score.
func score(c *api.Call) (*api.Reading, error) {
	m, err := ranker(c)
	if err != nil {
		return nil, err
	}
	one := jsonread.Kind(c.Body.Raw("text_1")) != "a list"
	pairs := reader{fields.Reader{Fields: c.Body}}.pairs()
	r, scores := reading(m, pairs, func(e *embed.TextError) string {
		field, single := "text_1", one
		if e.Document {
			field, single = "text_2", len(pairs) == 1
		}
		if single {
			return field
		}
		return fmt.Sprintf("%s[%d]", field, e.Index)
	})
	r.Write = func(p *jsonwrite.Reply, read int) {
		list := scoreList{ID: "score-" + c.ID, Object: "list", Created: time.Now().Unix(), Model: m.Name, Data: []int{}, Usage: report.ReadUsage{Prompt: read, Total: read}}
		p.Filled(list, "data", len(*scores), func(i int) {
			p.Value(scored{Index: i, Object: "score", Score: jsonwrite.Number((*scores)[i])})
		})
	}
	return r, fields.Finish(c)
}

// scoreList is the answer to a request for scores, but for these.
type scoreList struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Data    []int            `json:"data"`
	Usage   report.ReadUsage `json:"usage"`
}

// scored is the score of a pair.
type scored struct {
	Index  int     `json:"index"`
	Object string  `json:"object"`
	Score  float64 `json:"score"`
}

// reading returns a request for the scores of pairs of texts, and the scores that there are
// once it has been carried out.
func reading(m *registry.Model, pairs []embed.Pair, field func(*embed.TextError) string) (*api.Reading, *[]float32) {
	scores := new([]float32)
	return &api.Reading{Model: m, Task: "score", Texts: 2 * len(pairs), Width: m.Outputs, Field: field,
		Read: func(ctx context.Context) (n int, err error) {
			*scores, n, err = m.Rank.Score(ctx, pairs)
			return n, err
		},
	}, scores
}

// ranker finds the model that a request for scores asks for: by default, the first that
// is made for it, or else the first that embeds texts.
func ranker(c *api.Call) (*registry.Model, error) {
	m, err := c.Reader((*registry.Registry).Ranker, registry.TaskScore, registry.TaskEmbed)
	if err == nil && m.Rank == nil {
		return nil, api.Invalid(jsonread.CodeValue, "model", "The model '%s' scores no documents: it is no reranker and embeds no texts.", jsonread.Brief(m.Name))
	}
	return m, err
}
