package template

import "fmt"

// Choice is the template of a model's conversations, or the reason why it has none.
type Choice struct {
	Template *Template // nil: see Err
	Err      error     // why the file's template cannot be used
	Stops    []string  // texts that end an answer, besides the tokens that do
	Warning  string    // what the file lacks and what is done instead, or ""
}

// FromFile chooses the template that a model file carries. One that does not
// parse is not replaced: the model was made for something else than what could
// be guessed.
func FromFile(source string) (c Choice) {
	if c.Template, c.Err = Parse(source); c.Err != nil {
		c.Warning = fmt.Sprintf("conversations are refused: %v", c.Err)
	}
	return c
}

// Default chooses for a file without a template: ChatML where the vocabulary has
// its tokens, or else a plain dialogue. With bos, prompts begin with that token.
func Default(isToken func(text string) bool, bos bool) Choice {
	source, name, stops := ChatML, "ChatML", []string(nil)
	if !isToken("<|im_start|>") || !isToken("<|im_end|>") {
		source, name, stops = Plain, "a plain dialogue", []string{plainStop}
	}
	if bos {
		source = "{{ bos_token }}" + source
	}
	tmpl, err := Parse(source)
	if err != nil {
		panic(err) // it is one of ours
	}
	return Choice{Template: tmpl, Stops: stops, Warning: "no chat template in the file: conversations are written as " + name}
}
