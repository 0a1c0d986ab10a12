package reward

import (
	"context"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/judge"
)

// Format says what a reward model reads and where its score of a solution step
// stands. Reading a further kind of checkpoint is a further value of this type.
type Format struct {
	Name string
	// Separator ends a solution step in text that no search has divided.
	Separator string

	// write gives what the model reads to judge the last of an answer's steps,
	// whose score stands at the last token. nil: the model reads the very
	// tokens of the generator, and its score stands at each token that ends a
	// line or the turn.
	write func(ctx context.Context, r *reading) ([]int32, error)
	// whole says that an answer is judged as it stands, not step by step, and
	// that the output is a reward without bounds rather than log-odds.
	whole bool
	chat  bool   // write needs the model's chat template
	tag   string // special token at which scores stand

	// Writes says that a score is read off critiques that the model writes, as Judge says.
	Writes bool
	Judge  judge.Options

	// A score is the sigmoid of the model's one output, the softmax of the second of two, or the share of good among the
	// logits of the words good and bad. Of whole answers it is the softsign of the output.
	outputs   int // 0: the vocabulary
	good, bad string
}

// reading is an answer as far as a reward model is to read it.
type reading struct {
	*tts.Model                    // the reward model
	*Format                       //
	asked      []template.Message // the conversation that is answered
	text       string             // of the answer, its last step included
	steps      []string           // the same divided, without separators
}

// Formats returns the known ones, the default first.
func Formats() []Format {
	return []Format{
		{Name: "lutra", Separator: "\n", outputs: 1},
		// He et al. 2024, "Skywork-o1 Open Series": a value head at line ends.
		{Name: "skywork-prm", Separator: "\n", outputs: 1, write: endLines},
		// Zhang et al. 2025, "The Lessons of Developing Process Reward Models".
		{Name: "qwen-prm", Separator: "\n\n", outputs: 2, write: tagQwen, chat: true, tag: "<extra_0>"},
		// What TRL's PRMTrainer makes: classes of the tokens that end steps.
		{Name: "trl-prm", Separator: "\n\n", outputs: 2, write: joined},
		// Wang et al. 2024, "Math-Shepherd": a tag after each step.
		{Name: "math-shepherd", Separator: "\n", good: "+", bad: "-", write: tagSteps},
		// Xiong et al. 2024, "RLHFlow": a conversation in which the assistant's
		// only word judges the step that the user has written.
		{Name: "rlhflow", Separator: "\n\n", good: "+", bad: "-", write: conversed, chat: true},
		// Models of whole answers, as Hugging Face's *ForSequenceClassification
		// with one label. Their rewards (Bradley and Terry 1952) may be 20 or 30,
		// where a sigmoid in float32 tells nothing apart any more.
		{Name: "sequence", outputs: 1, write: wholeChat, chat: true, whole: true},
		// Language models that write critiques.
		{Name: judge.FormatThink, Writes: true, chat: true, whole: true},
		{Name: judge.FormatGen, Separator: "\n", Writes: true, chat: true},
		{Name: judge.FormatRubric, Writes: true, chat: true, whole: true},
	}
}

// steps divides text into solution steps. Blank ones do not count.
func (f *Format) steps(text string) []Extent {
	var out []Extent
	for start := 0; start < len(text); {
		end := len(text)
		if i := strings.Index(text[start:], f.Separator); i >= 0 && !f.whole {
			end = start + i + len(f.Separator)
		}
		if strings.TrimSpace(text[start:end]) != "" {
			out = append(out, Extent{start, end})
		}
		start = end
	}
	return out
}

// endLines tokenises the lines one by one, as the model was trained.
func endLines(_ context.Context, r *reading) ([]int32, error) {
	var ids []int32
	if id, ok := r.Tokenizer.BOS(); ok {
		ids = append(ids, id)
	}
	ids = r.Tokenizer.Encode(ids, r.question()+"\n", tokenizer.Options{})
	end := r.Tokenizer.Encode(nil, r.Separator, tokenizer.Options{})
	for line := range strings.SplitSeq(strings.TrimSuffix(r.text, r.Separator), r.Separator) {
		ids = r.Tokenizer.Encode(ids, line, tokenizer.Options{})
		ids = append(ids, end[len(end)-1])
	}
	return ids, nil
}

// qwenSystem begins every conversation that the model was trained on.
const qwenSystem = `Please reason step by step, and put your final answer within \boxed{}.`

func tagQwen(ctx context.Context, r *reading) ([]int32, error) {
	text, err := r.Render(ctx, &tts.Prompt{Ending: tts.NoGenerationPrompt, Messages: []template.Message{
		{Role: "system", Content: qwenSystem},
		{Role: "user", Content: r.question()},
		{Role: "assistant", Content: strings.Join(r.steps, r.tag) + r.tag},
	}})
	if err != nil {
		return nil, err
	}
	text = text[:strings.LastIndex(text, r.tag)+len(r.tag)] // a turn's end follows
	return r.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true}), nil
}

func joined(_ context.Context, r *reading) ([]int32, error) {
	text := r.question() + r.Separator + strings.Join(r.steps, r.Separator) + r.Separator
	return r.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true}), nil
}

func tagSteps(_ context.Context, r *reading) ([]int32, error) {
	text := r.question() + " " + strings.Join(r.steps, " ки\n") + " ки"
	return r.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true}), nil
}

func conversed(ctx context.Context, r *reading) ([]int32, error) {
	p := tts.Prompt{}
	for i, step := range r.steps {
		if i == 0 {
			step = r.question() + " " + step
		} else {
			p.Messages = append(p.Messages, template.Message{Role: "assistant", Content: "+"})
		}
		p.Messages = append(p.Messages, template.Message{Role: "user", Content: step})
	}
	return r.chatTokens(ctx, &p)
}

func wholeChat(ctx context.Context, r *reading) ([]int32, error) {
	answered := append(slices.Clip(r.asked), template.Message{Role: "assistant", Content: r.text})
	return r.chatTokens(ctx, &tts.Prompt{Ending: tts.NoGenerationPrompt, Messages: answered})
}

func (r *reading) chatTokens(ctx context.Context, p *tts.Prompt) ([]int32, error) {
	text, err := r.Render(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true}), nil
}

// question returns the last thing that the user wrote.
func (r *reading) question() string {
	for _, m := range slices.Backward(r.asked) {
		if text, ok := m.Content.(string); ok && m.Role == "user" {
			return text
		}
	}
	return ""
}

// conversation returns what an answer answers: the messages, or the prompt's text
// as the user's only one. begun is what the answer has before its first token.
func conversation(m *tts.Model, req *tts.Request, prompt []int32) (asked []template.Message, begun string) {
	if asked = req.Prompt.Messages; asked != nil {
		if req.Prompt.Ending != tts.ContinueFinalMessage {
			return asked, ""
		}
		last := len(asked) - 1
		begun, _ = asked[last].Content.(string)
		return asked[:last], begun
	}
	text := req.Prompt.Text
	if text == "" {
		text = m.Decode(prompt)
	}
	return []template.Message{{Role: "user", Content: text}}, ""
}

// Extent is a half-open range of bytes.
type Extent struct{ Start, End int }
