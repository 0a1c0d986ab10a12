package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// LoadOptions describe a load on an OpenAI-compatible server.
type LoadOptions struct {
	URL, Key, Model string
	Concurrency     int
	Rate            float64 // requests a second, at random times, from as many clients as that takes; 0: Concurrency counts
	Requests        int
	Seed            int // of prompts, and of times with Rate
	PromptWords     int
	SystemWords     int // of a system message that all requests share; 0: none
	MaxTokens       int
	Compare         []string      // other servers, NAME=URL each
	Beside          string        // another load, KEY=VALUE,...; empty: none
	Rounds          int           // with one of these
	Phase           time.Duration // with or without the other load
	Timeout         time.Duration // of a request

	first int // number of the first prompt
}

// DefaultLoadOptions returns a moderate load on a server of this machine.
func DefaultLoadOptions() LoadOptions {
	return LoadOptions{URL: "http://127.0.0.1:8080/v1", Model: apiclient.DefaultModel, Concurrency: 8, Requests: 64, PromptWords: 64, MaxTokens: 64,
		Rounds: 3, Phase: 3 * time.Second, Timeout: 10 * time.Minute}
}

// Server measures a server under load; if the options say so, alternately with others
// or beside another load. Progress goes to errOut.
func Server(ctx context.Context, o LoadOptions, errOut io.Writer) (Report, error) {
	if o.Concurrency < 1 || o.Requests < 1 || o.PromptWords < 1 || o.SystemWords < 0 || o.MaxTokens < 1 || o.Timeout <= 0 {
		return nil, usage.Errorf("--concurrency, --requests, --prompt-words, --max-tokens and --timeout must be positive, --system-words not negative")
	}
	if o.Seed < 0 || o.Seed > 1<<16 {
		return nil, usage.Errorf("--seed must be from 0 to %d", 1<<16)
	}
	if !(o.Rate >= 0 && o.Rate <= 1e4) {
		return nil, usage.Errorf("--rate must be from 0 to 10000 requests a second")
	}
	if _, err := apiclient.New(o.URL, o.Key); err != nil {
		return nil, err
	}
	switch {
	case o.Rate > 0 && o.Beside != "":
		return nil, usage.Errorf("--rate and --beside exclude each other")
	case len(o.Compare) > 0 && o.Beside != "":
		return nil, usage.Errorf("--compare and --beside exclude each other")
	case len(o.Compare) > 0:
		return compareServers(ctx, o, errOut)
	case o.Beside != "":
		return loadBeside(ctx, o)
	}
	r, err := loadTest(ctx, o, errOut)
	if err != nil && r.CompletionTokens == 0 {
		return nil, err
	}
	return r, err
}

// sample is the outcome of one request; times count from its start.
type sample struct {
	begun            time.Time
	first, whole     time.Duration
	prompt, produced int
	texts            []time.Time // when pieces of text came
	err              error
}

// LoadReport is the object of `bench serve --json`. Times are in milliseconds.
type LoadReport struct {
	URL              string      `json:"url"`
	Model            string      `json:"model"`
	Concurrency      int         `json:"concurrency,omitempty"`
	Rate             float64     `json:"rate,omitempty"` // asked for; Concurrency is absent then
	Requests         int         `json:"requests"`
	Errors           int         `json:"errors"`
	FirstError       string      `json:"first_error,omitempty"`
	Seconds          float64     `json:"seconds"`
	PromptTokens     int         `json:"prompt_tokens"`
	CompletionTokens int         `json:"completion_tokens"`
	TokensPerSecond  float64     `json:"completion_tok_s"`
	TotalPerSecond   float64     `json:"total_tok_s"`
	TTFT             Percentiles `json:"ttft_ms"`
	TPOT             Percentiles `json:"tpot_ms"`
	Latency          Percentiles `json:"latency_ms"`
}

// Percentiles are the extremes and percentiles of a time.
type Percentiles struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// loadTest sends o.Requests requests, from o.Concurrency clients or at o.Rate. Failed
// requests are counted, not fatal; an error means that none succeeded, or that ctx ended: the
// report is then of the requests before.
func loadTest(ctx context.Context, o LoadOptions, errOut io.Writer) (LoadReport, error) {
	client, err := o.connect(ctx)
	if err != nil {
		return LoadReport{}, err
	}
	samples := make([]sample, o.Requests)
	meter := &output.Meter{W: errOut, What: "requests"}
	defer meter.End()
	done := meter.Count(0, o.Requests)
	var next atomic.Int64
	start := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	clients := min(o.Concurrency, o.Requests)
	if o.Rate > 0 {
		clients = 0
		g.Go(func() error {
			return atRandom(gctx, o.Seed, o.Rate, o.Requests, func(i int) {
				g.Go(func() error {
					samples[i] = oneRequest(gctx, client, o, i)
					done()
					return gctx.Err()
				})
			})
		})
	}
	for range clients {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < int64(o.Requests); i = next.Add(1) - 1 {
				samples[i] = oneRequest(gctx, client, o, int(i))
				done()
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return LoadReport{}, err
	}
	took := time.Since(start)
	if ctx.Err() == nil {
		return summarise(o, samples, took)
	}
	samples = slices.DeleteFunc(samples, func(s sample) bool { return s.begun.IsZero() || errors.Is(s.err, context.Canceled) })
	if len(samples) == 0 {
		return LoadReport{}, ctx.Err()
	}
	o.Requests = len(samples)
	r, _ := summarise(o, samples, took) // that all have failed matters less
	return r, ctx.Err()
}

// atRandom calls do n times, on average rate times a second and at independent times (a Poisson process). They are the same
// for the same seed.
func atRandom(ctx context.Context, seed int, rate float64, n int, do func(i int)) error {
	random := rand.New(rand.NewPCG(1, uint64(seed)))
	at := time.Now()
	for i := range n {
		at = at.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		select {
		case <-time.After(time.Until(at)):
		case <-ctx.Done():
			return ctx.Err()
		}
		do(i)
	}
	return nil
}

// connect makes a client, and finds out which model the default one is. Servers that
// list no models are asked for it by that name.
func (o *LoadOptions) connect(ctx context.Context) (*apiclient.Client, error) {
	client, err := apiclient.New(o.URL, o.Key)
	if err == nil && o.Model == apiclient.DefaultModel {
		if list, err := client.List(ctx); err == nil {
			o.Model = list.Named(o.Model)
		}
	}
	return client, err
}

// oneRequest asks one question. The sample of a failed request holds what came before
// the failure.
func oneRequest(ctx context.Context, client *apiclient.Client, o LoadOptions, i int) sample {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	messages := o.messages(i)
	s := sample{begun: time.Now()}
	stream, err := client.API.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model:         o.Model,
		Messages:      messages,
		MaxTokens:     o.MaxTokens, //lint:ignore SA1019 every server knows it, not all know its successor
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	})
	if err != nil {
		s.err = apiclient.Explain(client.Base, err)
		return s
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.err = apiclient.Explain(client.Base, err)
			return s
		}
		if chunk.Usage != nil {
			s.prompt, s.produced = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			s.texts = append(s.texts, time.Now())
		}
	}
	s.whole = time.Since(s.begun)
	if len(s.texts) > 0 {
		s.first = s.texts[0].Sub(s.begun)
	}
	if s.first == 0 {
		s.first = s.whole // nothing but an end-of-turn token
	}
	return s
}

// messages returns the conversation of request i.
func (o *LoadOptions) messages(i int) []openai.ChatCompletionMessage {
	question := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: loadPrompt(o.Seed<<32+o.first+i, o.PromptWords)}
	if o.SystemWords == 0 {
		return []openai.ChatCompletionMessage{question}
	}
	return []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleSystem, Content: loadPrompt(0, o.SystemWords)}, question}
}

// loadPrompt returns a text of n words that differs between values of i from the first word.
func loadPrompt(i, n int) string {
	words := strings.Fields("the box holds red apples and green pears while seven birds watch over a quiet river where boats carry salt to towns")
	var b strings.Builder
	fmt.Fprintf(&b, "%d", i)
	for w := 1; w < n; w++ {
		b.WriteByte(' ')
		b.WriteString(words[(w*7+i*13)%len(words)])
	}
	return b.String()
}

func summarise(o LoadOptions, samples []sample, took time.Duration) (LoadReport, error) {
	r := LoadReport{URL: o.URL, Model: o.Model, Concurrency: o.Concurrency, Rate: o.Rate, Requests: o.Requests, Seconds: took.Seconds()}
	if o.Rate > 0 {
		r.Concurrency = 0
	}
	var ttft, tpot, whole []float64
	for _, s := range samples {
		if s.err != nil {
			r.Errors++
			r.FirstError = cmp.Or(r.FirstError, s.err.Error())
			continue
		}
		r.PromptTokens += s.prompt
		r.CompletionTokens += s.produced
		ttft = append(ttft, milliseconds(s.first))
		whole = append(whole, milliseconds(s.whole))
		if s.produced > 1 {
			tpot = append(tpot, milliseconds(s.whole-s.first)/float64(s.produced-1))
		}
	}
	if r.Errors == len(samples) {
		return r, fmt.Errorf("all %d requests failed: %s", len(samples), r.FirstError)
	}
	r.TokensPerSecond = float64(r.CompletionTokens) / r.Seconds
	r.TotalPerSecond = float64(r.CompletionTokens+r.PromptTokens) / r.Seconds
	r.TTFT, r.TPOT, r.Latency = percentilesOf(ttft), percentilesOf(tpot), percentilesOf(whole)
	return r, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentilesOf uses the nearest rank. It sorts v.
func percentilesOf(v []float64) Percentiles {
	if len(v) == 0 {
		return Percentiles{}
	}
	slices.Sort(v)
	at := func(p int) float64 { return v[min(len(v)-1, (p*len(v)+99)/100-1)] }
	return Percentiles{Min: v[0], P50: at(50), P90: at(90), P95: at(95), P99: at(99), Max: v[len(v)-1]}
}

// Print implements Report.
func (r LoadReport) Print(w io.Writer) error {
	from := fmt.Sprintf("%d clients", r.Concurrency)
	if r.Rate > 0 {
		from = fmt.Sprintf("%g a second", r.Rate)
	}
	fmt.Fprintf(w, "%d requests, %s, %d errors, %.2f s\n", r.Requests, from, r.Errors, r.Seconds)
	if r.FirstError != "" {
		fmt.Fprintf(w, "first error: %s\n", r.FirstError)
	}
	fmt.Fprintf(w, "%d prompt + %d completion tokens: %.1f completion tok/s, %.1f total tok/s\n\n",
		r.PromptTokens, r.CompletionTokens, r.TokensPerSecond, r.TotalPerSecond)
	row := func(name string, p Percentiles) []string {
		f := func(x float64) string { return fmt.Sprintf("%.1f", x) }
		return []string{name, f(p.Min), f(p.P50), f(p.P90), f(p.P95), f(p.P99), f(p.Max)}
	}
	return output.Table(w, [][]string{
		{"ms", "min", "p50", "p90", "p95", "p99", "max"},
		row("TTFT", r.TTFT), row("TPOT", r.TPOT), row("latency", r.Latency),
	})
}
