package template

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// question is the user's message in a probe.
const question = "lutra_question"

// Turn returns what the template writes after a question for the assistant's answer and the messages
// after it, where the model is told of two tools. It shows how models trained with the template write their
// answers. Messages are adapted (Input.Adapt).
func (t *Template) Turn(answer ...Message) (string, error) {
	return t.behindQuestion(Input{Messages: append([]Message{{Role: "user", Content: question}}, answer...)})
}

// Header returns the text that the template writes after a question to begin an answer.
func (t *Template) Header() (string, error) {
	return t.behindQuestion(Input{Messages: []Message{{Role: "user", Content: question}}, AddGenerationPrompt: true})
}

func (t *Template) behindQuestion(in Input) (string, error) {
	in.Adapt = true
	for _, name := range ProbeTools {
		in.Tools = append(in.Tools, json.RawMessage(`{"type":"function","function":{"name":"`+name+`","description":"x","parameters":{"type":"object",`+
			`"properties":{"x":{"type":"string","description":"x"}},"required":["x"]}}}`))
	}
	text, err := t.probe(in)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(text, question)
	if at < 0 {
		return "", errors.New("template: it does not show what the user says")
	}
	return text[at+len(question):], nil
}

// ProbeTools are the tools that Turn tells of: names that no template has.
var ProbeTools = [2]string{"lutra_first", "lutra_second"}

// MarkPattern matches what may be a token of its own in what a template writes: a tag, or words between brackets. A
// tag may be of tokens itself, of which <|sep|> is the last, as Kimi K3 has them.
var MarkPattern = regexp.MustCompile(`<\|\w+\|>[^<>\s"=']{1,80}<\|sep\|>|<[^<>\s"=']{1,80}>|\[/?[A-Z][A-Z_ ]{1,40}\]`)

// Marks returns what MarkPattern finds in a text.
func Marks(text string) []string { return MarkPattern.FindAllString(text, -1) }

// MarkStart returns where the mark begins that a place in a text is within, else that place.
func MarkStart(text string, at int) int {
	for _, mark := range MarkPattern.FindAllStringIndex(text, -1) {
		if mark[0] < at && at < mark[1] {
			return mark[0]
		}
	}
	return at
}
