package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// AgentOptions describe the session of an agent that writes code.
type AgentOptions struct {
	URL, Key, Model string
	Turns           int // calls of a tool and their results
	From            int // the first turn that is asked for; others have been, of a server that has kept them
	Words           int // of the last prompt, about
	MaxTokens       int // of an answer
	Seed            int // another one has another session
	Compare         []string
	Timeout         time.Duration // of a request
}

// DefaultAgentOptions returns a session of 20 turns and about 60,000 tokens.
func DefaultAgentOptions() AgentOptions {
	return AgentOptions{URL: DefaultLoadOptions().URL, Model: apiclient.DefaultModel, Turns: 20, Words: 50_000, MaxTokens: 64, Timeout: 30 * time.Minute}
}

// agentRequest is a request of a session.
type agentRequest struct {
	openai.ChatCompletionRequest
	known float64 // the share of its text that an earlier request began with
	turn  int
}

// titleEvery counts the turns between two requests for a title of the conversation.
const titleEvery = 7

// session returns the requests of an agent, the same for all servers whatever they answer. Each has instructions, tools, the
// conversation so far and a reminder of the moment, which the next one lacks. Now and then a short request for a title, with
// another beginning, comes between.
func (o *AgentOptions) session() (list []agentRequest) {
	tools, part := min(12, 1+o.Words/2000), max(1, o.Words/8)
	seed := o.Seed << 32
	text := func(i, words int) string { return loadPrompt(seed+i, words) }
	message := func(role, content string) openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: role, Content: content}
	}
	var all []openai.Tool
	for i := range tools {
		all = append(all, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: fmt.Sprintf("tool_%d", i), Description: text(100+i, max(1, part/tools)),
			Parameters: json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}`),
		}})
	}
	task := message(openai.ChatMessageRoleUser, text(2, max(1, part/10)))
	chat := []openai.ChatCompletionMessage{message(openai.ChatMessageRoleSystem, text(1, part)), task}
	ask := func(turn int, messages []openai.ChatCompletionMessage, tools []openai.Tool, most int) {
		list = append(list, agentRequest{turn: turn, ChatCompletionRequest: openai.ChatCompletionRequest{Messages: messages, Tools: tools,
			MaxTokens: most, //lint:ignore SA1019 every server knows it, not all know its successor
		}})
	}
	for turn := range o.Turns {
		if turn%titleEvery == 0 {
			ask(turn, []openai.ChatCompletionMessage{message(openai.ChatMessageRoleSystem, "Say in six words what the user wants."), task}, nil, min(16, o.MaxTokens))
		}
		reminder := fmt.Sprintf("It is %d minutes past the hour. Open files: %s", turn, text(1000+turn, 1+part/100))
		ask(turn, append(chat[:len(chat):len(chat)], message(openai.ChatMessageRoleUser, reminder)), all, o.MaxTokens)
		id := fmt.Sprintf("call_%d", turn)
		call := message(openai.ChatMessageRoleAssistant, text(2000+turn, 1+part/100))
		call.ToolCalls = []openai.ToolCall{{ID: id, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: fmt.Sprintf("tool_%d", turn%tools), Arguments: fmt.Sprintf(`{"path": "file_%d.go"}`, turn)}}}
		result := message(openai.ChatMessageRoleTool, text(3000+turn, max(1, (o.Words-2*part)/o.Turns)))
		result.ToolCallID = id
		chat = append(chat, call, result)
	}
	o.weigh(list)
	return slices.DeleteFunc(list, func(r agentRequest) bool { return r.turn < o.From })
}

// weigh finds out how much of each request an earlier one began with.
func (o *AgentOptions) weigh(list []agentRequest) {
	texts := make([]string, len(list))
	for i := range list {
		var b strings.Builder
		write := json.NewEncoder(&b)
		for _, v := range []any{list[i].Tools, list[i].Messages} {
			if err := write.Encode(v); err != nil {
				panic(err) // texts and numbers
			}
		}
		texts[i] = b.String()
		for _, t := range texts[:i] {
			n := 0
			for n < min(len(t), len(texts[i])) && t[n] == texts[i][n] {
				n++
			}
			list[i].known = max(list[i].known, float64(n)/float64(len(texts[i])))
		}
	}
}

// AgentReport is the object of `bench agent --json`, AgentRun what one server has taken. Times are in milliseconds but for
// the last.
type (
	AgentReport struct {
		Turns    int        `json:"turns"`
		Requests int        `json:"requests"`
		Servers  []AgentRun `json:"servers"`
	}
	AgentRun struct {
		Name       string      `json:"name"`
		Prompt     int         `json:"prompt_tokens"`
		Longest    int         `json:"longest_prompt"`
		Cached     int         `json:"cached_tokens"`
		Recomputed int         `json:"recomputed_tokens"` // about: tokens that an earlier request began with, and that were not cached
		Share      float64     `json:"recomputed_share"`  // of the tokens that an earlier request began with
		Completion int         `json:"completion_tokens"`
		First      float64     `json:"first_ttft_ms"` // of the first request with the whole beginning
		TTFT       Percentiles `json:"ttft_ms"`
		Seconds    float64     `json:"seconds"`
	}
)

// Agent has servers answer a session, one after the other.
func Agent(ctx context.Context, o AgentOptions, errOut io.Writer) (Report, error) {
	if o.Turns < 1 || o.Turns > 1000 || o.From < 0 || o.From >= o.Turns || o.Words < 1 || o.Words > 1<<20 || o.MaxTokens < 1 || o.Seed < 0 || o.Seed > 1<<16 || o.Timeout <= 0 {
		return nil, usage.Errorf("--turns must be from 1 to 1000, --from less, --words from 1 to %d, --seed from 0 to %d, --max-tokens and --timeout positive", 1<<20, 1<<16)
	}
	peers, err := (&PeerOptions{Compare: o.Compare}).peers()
	if err != nil {
		return nil, err
	}
	list := o.session()
	r := AgentReport{Turns: o.Turns, Requests: len(list)}
	servers := [][2]string{{o.URL, o.URL}}
	for _, p := range peers {
		name, url := p.label()
		servers = append(servers, [2]string{name, url})
	}
	for _, s := range servers {
		run, err := o.run(ctx, s[0], s[1], list, errOut)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s[0], err)
		}
		r.Servers = append(r.Servers, run)
	}
	return r, nil
}

// run has one server answer.
func (o AgentOptions) run(ctx context.Context, name, url string, list []agentRequest, errOut io.Writer) (AgentRun, error) {
	load := LoadOptions{URL: url, Key: o.Key, Model: o.Model}
	client, err := load.connect(ctx)
	if err != nil {
		return AgentRun{}, err
	}
	r := AgentRun{Name: name}
	meter := &output.Meter{W: errOut, What: "requests"}
	defer meter.End()
	done := meter.Count(0, len(list))
	var first []float64
	known, began := 0.0, time.Now()
	for i := range list {
		list[i].Model = load.Model
		took, used, err := o.ask(ctx, client, list[i].ChatCompletionRequest)
		if err != nil {
			return r, fmt.Errorf("request %d: %w", i+1, err)
		}
		cached := 0
		if d := used.PromptTokensDetails; d != nil {
			cached = d.CachedTokens
		}
		r.Prompt, r.Longest, r.Cached, r.Completion = r.Prompt+used.PromptTokens, max(r.Longest, used.PromptTokens), r.Cached+cached, r.Completion+used.CompletionTokens
		before := list[i].known * float64(used.PromptTokens)
		known += before
		r.Recomputed += max(0, int(before)-cached)
		if len(list[i].Tools) > 0 {
			r.First = cmp.Or(r.First, milliseconds(took))
		}
		first = append(first, milliseconds(took))
		done()
	}
	r.Seconds, r.TTFT = time.Since(began).Seconds(), percentilesOf(first)
	if known > 0 {
		r.Share = float64(r.Recomputed) / known
	}
	return r, nil
}

// ask returns the time to the first token of an answer, and what it took of tokens.
func (o *AgentOptions) ask(ctx context.Context, client *apiclient.Client, req openai.ChatCompletionRequest) (first time.Duration, used openai.Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	began := time.Now()
	stream, err := client.API.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return 0, used, apiclient.Explain(client.Base, err)
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return cmp.Or(first, time.Since(began)), used, nil
		}
		if err != nil {
			return 0, used, apiclient.Explain(client.Base, err)
		}
		if chunk.Usage != nil {
			used = *chunk.Usage
		}
		if len(chunk.Choices) > 0 {
			if d := chunk.Choices[0].Delta; d.Content != "" || d.ReasoningContent != "" || len(d.ToolCalls) > 0 {
				first = cmp.Or(first, time.Since(began))
			}
		}
	}
}

// Print implements Report.
func (r AgentReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d turns, %d requests\n\n", r.Turns, r.Requests)
	rows := [][]string{{"server", "prompt tokens", "longest", "cached", "recomputed", "%", "first TTFT ms", "TTFT p50", "TTFT max", "total s"}}
	for _, s := range r.Servers {
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Prompt), fmt.Sprint(s.Longest), fmt.Sprint(s.Cached), fmt.Sprint(s.Recomputed), fmt.Sprintf("%.1f", 100*s.Share),
			fmt.Sprintf("%.0f", s.First), fmt.Sprintf("%.0f", s.TTFT.P50), fmt.Sprintf("%.0f", s.TTFT.Max), fmt.Sprintf("%.1f", s.Seconds)})
	}
	return output.Table(w, rows)
}
