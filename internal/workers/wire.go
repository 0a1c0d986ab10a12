package workers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
)

// request is a text completion as this program's servers read it (docs/api.md).
type request struct {
	Model      string    `json:"model"`
	Prompt     []int32   `json:"prompt"`
	Candidates []int     `json:"candidates"`
	Begun      [][]int32 `json:"begun"`
	Seed       uint64    `json:"seed"`
	MaxTokens  int       `json:"max_tokens"`
	// All of it: a field that is not there would have the default of the worker's model.
	sampling.Config
	RepeatPenalty *float32 `json:"repeat_penalty,omitempty"` // of the latest RepeatLastN tokens, in place of RepetitionPenalty
	LogitBias     [][2]any `json:"logit_bias,omitempty"`
	StopTokens    []int32  `json:"stop_token_ids,omitempty"`
	IgnoreEOS     bool     `json:"ignore_eos"` // StopTokens has them
	Stop          []string `json:"stop,omitempty"`
	KeepStop      bool     `json:"include_stop_str_in_output"` // else its tokens are not listed
	Delimiters    []string `json:"delimiters,omitempty"`
	Breakers      []string `json:"dry_sequence_breakers,omitzero"` // an empty list is not the usual one
	Salt          string   `json:"cache_salt,omitempty"`
	Logprobs      int      `json:"logprobs"`
	ReturnTokens  bool     `json:"return_tokens"`
	Stream        bool     `json:"stream"`
}

// Bounds of the fields, as servers have them.
const (
	mostStopTokens = 1024
	mostBias       = 1024
	mostStops      = 16
	longestStop    = 1024
	mostCandidate  = 1 << 20
	mostJobs       = 64 // of a request; server.max_choices is 128 by default
)

// fits reports whether a worker can be asked for work at all: other interfaces of a
// server allow numbers that the wire does not.
func fits(w *tts.Work) bool {
	p := &w.Params
	in := func(v, lo, hi float32) bool { return v >= lo && v <= hi }
	for id, bias := range p.LogitBias {
		if id < 0 || !in(bias, -100, 100) && !math.IsInf(float64(bias), -1) {
			return false
		}
	}
	for _, j := range w.Jobs {
		if j.Candidate < 0 || j.Candidate > mostCandidate {
			return false
		}
	}
	for i := range sampling.Fields {
		if !sampling.Fields[i].Requested(p) {
			return false
		}
	}
	return len(p.LogitBias) <= mostBias && len(p.Stop) <= mostStopTokens && p.Constraint == nil && p.TopLogprobs == 0 && !p.IgnoreEOS
}

// newRequest asks for the jobs of w after what each has; most is the largest number
// of tokens that one wants.
func newRequest(model string, w *tts.Work, numbers []int, begun [][]int32, most int) *request {
	p := &w.Params
	r := &request{
		Model: model, Prompt: w.Prompt, Candidates: numbers, Begun: begun, Seed: p.Seed, MaxTokens: most,
		Config:     sampling.ConfigOf(p).Or(sampling.Plain()),
		StopTokens: p.Stop, IgnoreEOS: true, KeepStop: true, Delimiters: w.Delimiters, Breakers: w.Breakers, Salt: w.Salt, ReturnTokens: true, Stream: true,
	}
	if p.RepetitionWindow > 0 {
		r.RepeatPenalty, r.RepetitionPenalty = r.RepetitionPenalty, nil
	}
	for _, id := range slices.Sorted(maps.Keys(p.LogitBias)) {
		bias := any(float64(p.LogitBias[id]))
		if math.IsInf(float64(p.LogitBias[id]), -1) {
			bias = false
		}
		r.LogitBias = append(r.LogitBias, [2]any{id, bias})
	}
	for _, s := range w.Stops { // a hint: without it a job only goes on too far
		if s != "" && len(s) <= longestStop && len(r.Stop) < mostStops {
			r.Stop = append(r.Stop, s)
		}
	}
	return r
}

// event has the fields of a chunk that this program reads.
type event struct {
	Print   string  `json:"system_fingerprint"`
	Choices []piece `json:"choices"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// piece is a part of a choice.
type piece struct {
	Index    int     `json:"index"`
	Tokens   []int32 `json:"tokens"`
	Logprobs *struct {
		Token     []float64 `json:"token_logprobs"`
		Certainty []float64 `json:"certainty"`
	} `json:"logprobs"`
	Finish *string `json:"finish_reason"`
}

// impossible stands on the wire for what JSON cannot write.
const impossible = -9999

// tokens returns the tokens of a piece.
func (p *piece) tokens(vocab int) ([]sampling.Token, error) {
	if len(p.Tokens) == 0 {
		return nil, nil
	}
	if l := p.Logprobs; l == nil || len(l.Token) != len(p.Tokens) || len(l.Certainty) != len(p.Tokens) {
		return nil, wrong("%d token ids come without as many log-probabilities", len(p.Tokens))
	}
	list := make([]sampling.Token, len(p.Tokens))
	for i, id := range p.Tokens {
		if id < 0 || int(id) >= vocab {
			return nil, wrong("token id %d is outside the vocabulary of %d", id, vocab)
		}
		list[i] = sampling.Token{ID: id, Logprob: float32(p.Logprobs.Token[i]), Certainty: float32(p.Logprobs.Certainty[i])}
		if list[i].Logprob <= impossible {
			list[i].Logprob = float32(math.Inf(-1))
		}
	}
	return list, nil
}

// Bounds of an answer.
const (
	longestEvent = 256 << 10 // bytes
	eventBytes   = 4 << 10   // for each token that was asked for, which takes 400
	moreBytes    = 4 << 20   // for the beginning, and what keeps a silent stream alive
)

// errCut says that a stream broke off.
var errCut = errors.New("the answer breaks off")

// readEvents reads a stream of at most most bytes to its end.
func readEvents(body io.Reader, most int64, each func(*event) error) error {
	limited := &io.LimitedReader{R: body, N: most}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4<<10), longestEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		switch {
		case !ok:
			continue // the line between two events
		case string(data) == "[DONE]":
			return nil
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return wrong("an event is no chunk of an answer: %v", err)
		}
		if e.Error != nil {
			return fmt.Errorf("it fails: %.200q", e.Error.Message)
		}
		if err := each(&e); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return wrong("an event has more than %d bytes", longestEvent)
	case err != nil:
		return fmt.Errorf("%w: %w", errCut, err)
	case limited.N == 0:
		return wrong("an answer has more than %d bytes", most)
	}
	return errCut
}

// said returns the message of an error's body.
func said(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, 4<<10)) // what there is
	var e struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(data, &e) == nil && e.Error.Message != "" {
		return fmt.Sprintf("%.200q", e.Error.Message)
	}
	return fmt.Sprintf("%.200q", strings.TrimSpace(string(data)))
}
