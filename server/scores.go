package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/ollama"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/embed"
)

// rerank is POST /v1/rerank, of Jina's, Cohere's and vLLM's clients.
func (s *Server) rerank(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	m, err := s.ranker(body)
	if err != nil {
		return err
	}
	q := openai.Fields{Fields: body}.Ranking()
	if err := s.finish(body); err != nil {
		return err
	}
	pairs := make([]embed.Pair, len(q.Documents))
	for i, text := range q.Documents {
		pairs[i] = embed.Pair{Query: q.Query, Document: text}
	}
	scores, err := s.scores(r, m, pairs, func(e *embed.TextError) string {
		if e.Document {
			return fmt.Sprintf("documents[%d]", e.Index)
		}
		return "query"
	})
	if err != nil {
		return err
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	rec := recordOf(r.Context())
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		list := rankedList{ID: "rerank-" + rec.id, Object: "list", Model: m.Name, Results: []int{}, Usage: readUsage{rec.Usage.Prompt, rec.Usage.Prompt}}
		p.Around(list, `"results":[]`, func() {
			p.Raw(`"results":`)
			p.List(q.Top, func(i int) {
				one := ranked{Index: order[i], Score: jsonwrite.Number(scores[order[i]])}
				if q.Repeat {
					one.Document = &passage{q.Documents[order[i]]}
				}
				p.Value(one)
			})
		})
	})
	return nil
}

// rankedList is the answer to a request for a ranking, but for its results.
type rankedList struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Model   string    `json:"model"`
	Results []int     `json:"results"`
	Usage   readUsage `json:"usage"`
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

// score is vLLM's POST /v1/score.
func (s *Server) score(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	m, err := s.ranker(body)
	if err != nil {
		return err
	}
	one := jsonread.Kind(body.Raw("text_1")) != "a list"
	pairs := openai.Fields{Fields: body}.Pairs()
	if err := s.finish(body); err != nil {
		return err
	}
	scores, err := s.scores(r, m, pairs, func(e *embed.TextError) string {
		field, single := "text_1", one
		if e.Document {
			field, single = "text_2", len(pairs) == 1
		}
		if single {
			return field
		}
		return fmt.Sprintf("%s[%d]", field, e.Index)
	})
	if err != nil {
		return err
	}
	rec := recordOf(r.Context())
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		list := scoreList{ID: "score-" + rec.id, Object: "list", Created: time.Now().Unix(), Model: m.Name, Data: []int{}, Usage: readUsage{rec.Usage.Prompt, rec.Usage.Prompt}}
		p.Around(list, `"data":[]`, func() {
			p.Raw(`"data":`)
			p.List(len(scores), func(i int) { p.Value(scored{Index: i, Object: "score", Score: jsonwrite.Number(scores[i])}) })
		})
	})
	return nil
}

// scoreList is the answer to a request for scores, but for these.
type scoreList struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Data    []int     `json:"data"`
	Usage   readUsage `json:"usage"`
}

// scored is the score of a pair.
type scored struct {
	Index  int     `json:"index"`
	Object string  `json:"object"`
	Score  float64 `json:"score"`
}

// scores has a model score pairs of texts.
func (s *Server) scores(r *http.Request, m *registry.Model, pairs []embed.Pair, name func(*embed.TextError) string) (scores []float32, err error) {
	err = s.read(r, m, "score", 2*len(pairs), int64(m.Outputs), func(ctx context.Context) (int, error) {
		var n int
		scores, n, err = m.Rank.Score(ctx, pairs)
		return n, err
	}, name)
	return scores, err
}

// ranker finds the model that a request for scores asks for: by default, the first that
// is made for it, or else the first that embeds texts.
func (s *Server) ranker(f *jsonread.Fields) (*registry.Model, error) {
	m, err := s.reader(f, (*registry.Registry).Ranker)
	if err == nil && m.Rank == nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' scores no documents: it is no reranker and embeds no texts.", jsonread.Brief([]byte(m.Name)))
	}
	return m, err
}

// reader reads the model of a request for a model that reads texts and writes none.
func (s *Server) reader(f *jsonread.Fields, find func(*registry.Registry, string) (*registry.Model, error)) (*registry.Model, error) {
	var name string
	f.String("model", &name)
	if f.Err != nil {
		return nil, f.Err
	}
	models, err := s.registered()
	if err != nil {
		return nil, err
	}
	m, err := find(models, name)
	if short, tagged := strings.CutSuffix(name, ollama.Tag); err != nil && tagged {
		m, err = find(models, short)
	}
	return m, err
}
