package adversary

import (
	"io"
	"slices"
	"strings"
)

// Body is a request's body with as much of one thing as fits: head, then unit again
// and again, then tail. It is made while it is read.
type Body struct {
	Path, Name       string
	head, unit, tail string
	Size             int // bytes
}

// most limits a unit to the number that the API allows.
func most(n int) func(*Body) {
	return func(b *Body) { b.Size = min(b.Size, len(b.head)+n*len(b.unit)+len(b.tail)) }
}

// Bodies returns requests of about size bytes, of every kind and to every endpoint. Some
// are valid; others must be refused.
func Bodies(size int) []Body {
	const message = `{"messages":[{"role":"user","content":"`
	long := strings.Repeat("word ", 800)
	var all []Body
	path := ""
	add := func(name, head, unit, tail string, bounds ...func(*Body)) {
		b := Body{Path: path, Name: name, head: head, unit: unit, tail: tail, Size: size}
		for _, bound := range bounds {
			bound(&b)
		}
		b.Size -= (b.Size - len(head) - len(tail)) % len(unit)
		all = append(all, b)
	}
	path = "/v1/chat/completions"
	add("a long text", message, "word ", `"}]}`)
	add("escapes", message, `\u00e9`, `"}]}`)
	add("short escapes", message, `\"`, `"}]}`)
	add("messages", message+`a"}`, `,{"role":"user","content":"a"}`, `]}`)
	add("long messages", message+`a"}`, `,{"role":"user","content":"`+long+`"}`, `]}`)
	add("parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}`, `,{"type":"text","text":"a"}`, `]}]}`)
	add("unknown fields", `{"messages":[{"role":"user","content":"a"`, `,"a":1`, `}]}`)
	add("stop tokens", message+`a"}],"n":128,"stop_token_ids":[1`, `,1`, `]}`)
	add("stop strings", message+`a"}],"n":128,"stop":["a"`, `,"a"`, `]}`)
	add("biases", message+`a"}],"logit_bias":{"1":1`, `,"1":1`, `}}`)
	add("metadata", message+`a"}],"metadata":{"a":"a"`, `,"a":"a"`, `}}`)
	add("template variables", message+`a"}],"chat_template_kwargs":{"a":[1`, `,1`, `]}}`)
	add("a name", message+`a","name":"`, `a`, `"}]}`)
	add("a model's name", `{"model":"`, `a`, `"}`)
	add("included things", message+`a"}],"test_time_scaling":{"method":"best_of_n","include":["tree"`, `,"tree"`, `]}}`)
	add("a search's separators", message+`a"}],"test_time_scaling":{"method":"best_of_n","step":{"stop":["a"`, `,"a"`, `]}}}`)
	add("a written search", message+`a"}],"test_time_scaling":"sc8`, `;n=8`, `"}`)
	add("lists within lists", `{"messages":`, `[`, `}`)
	add("lists that are no JSON", ``, `[[`, `}`)
	add("digits", message+`a"}],"temperature":1`, `0`, `}`)
	path = "/v1/completions"
	add("a long text", `{"max_tokens":1,"prompt":"`, `word `, `"}`)
	add("tokens", `{"max_tokens":1,"prompt":[1`, `,1`, `]}`)
	add("texts", `{"max_tokens":1,"prompt":["a"`, `,"a"`, `]}`)
	add("token lists", `{"max_tokens":1,"prompt":[[1]`, `,[1]`, `]}`)
	add("a few texts", `{"max_tokens":1,"prompt":["a"`, `,"`+strings.Repeat(long, 20)+`"`, `]}`)
	add("a suffix", `{"prompt":"a","suffix":"`, `a`, `"}`)
	add("an empty list", `{"prompt":[`, ` `, `]}`)
	path = "/tokenize"
	add("words", `{"prompt":"`, `word `, `"}`)
	add("one word", `{"prompt":"`, `a`, `"}`)
	add("digits", `{"prompt":"`, `1`, `"}`)
	add("signs", `{"prompt":"`, `\u2665`, `"}`)
	add("spaces", `{"prompt":"`, " ", `"}`)
	add("special tokens", `{"prompt":"`, "<|im_end|>", `"}`)
	add("token names", `{"return_token_strs":true,"prompt":"`, `1`, `"}`)
	add("a conversation", message, "word ", `"}]}`)
	path = "/detokenize"
	add("too many tokens", `{"tokens":[1`, `,1`, `]}`)
	add("many tokens", `{"tokens":[1`, `,1`, `]}`, most(1<<18-1))
	add("tokens and spaces", `{"tokens":[1`, `,                      1`, `]}`, most(1<<18-1))
	path = "/apply-template"
	add("a long text", message, "word ", `"}]}`)
	add("long messages", message+`a"}`, `,{"role":"user","content":"`+long+`"}`, `]}`)
	path = "/v1/rewards"
	add("a long response", message+`a"}],"responses":["a`, `word `, `"]}`)
	add("responses", message+`a"}],"responses":["a"`, `,"a"`, `]}`)
	add("steps", message+`a"}],"responses":["a`, `a\n`, `"]}`)
	return all
}

// Reader reads the body from its beginning.
func (b *Body) Reader() io.Reader {
	return io.MultiReader(strings.NewReader(b.head), &repeated{unit: b.unit, left: b.Size - len(b.head) - len(b.tail)}, strings.NewReader(b.tail))
}

// repeated reads unit again and again.
type repeated struct {
	unit  string
	at    int // in unit
	left  int // bytes
	block []byte
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	if r.block == nil { // so that short units are not copied one by one
		r.block = slices.Repeat([]byte(r.unit), max(1, 4096/len(r.unit)))
	}
	n := copy(p, r.block[r.at:min(len(r.block), r.at+r.left)])
	r.at, r.left = (r.at+n)%len(r.block), r.left-n
	return n, nil
}
