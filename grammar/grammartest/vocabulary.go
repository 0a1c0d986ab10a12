// Package grammartest checks the promises of grammars, however they are described. Every text can come to an end, a mask
// has the tokens that may be read and no others, and a text is read in whichever tokens it is cut into.
package grammartest

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Vocabulary is a vocabulary with the texts of its tokens.
type Vocabulary struct {
	*grammar.Vocabulary
	Texts [][]byte
}

// Of makes a vocabulary of texts.
func Of(texts [][]byte) Vocabulary {
	return Vocabulary{grammar.NewVocabulary(len(texts), func(id int32) []byte { return texts[id] }), texts}
}

// Bytes is the vocabulary of the 256 bytes.
var Bytes = sync.OnceValue(func() Vocabulary { return Of(bytes()) })

func bytes() (texts [][]byte) {
	for b := range 256 {
		texts = append(texts, []byte{byte(b)})
	}
	return texts
}

// Embedded is the vocabulary of the models in the binary.
var Embedded = sync.OnceValue(func() Vocabulary {
	f, err := embedded.Open(embedded.Default)
	if err != nil {
		panic(err)
	}
	t, err := tokenizer.New(f.Metadata)
	if err != nil {
		panic(err)
	}
	texts := make([][]byte, t.Size())
	for id := range texts {
		if texts[id] = t.Piece(int32(id)); !t.Plain(int32(id)) {
			texts[id] = []byte(grammar.Special + t.Token(int32(id)))
		}
	}
	return Of(append(texts, bytes()...)) // so that it writes every text
})

// Hostile makes a vocabulary that no tokenizer has. It has all bytes, and tokens of no text, of one text several times, that
// begin or end within a character or an escape, or that hold several values. Some are special by name alone, as long as a
// token may be, or longer; others are pieces of samples that ignore where values begin or end.
func Hostile(r *rand.Rand, samples ...string) Vocabulary {
	texts := append(bytes(), nil, []byte{}, []byte(grammar.Special+"<end>"), []byte(grammar.Special+"1"))
	for _, text := range []string{
		`"`, `"`, `""`, `\`, `\"`, `\\`, `\u`, `\u00`, `\u001f"`, "\xc3", "\xa9\"", "\xf0\x9f", "\x98\x80", "é", "😀", `",`, `","`, `", "`, `":`, `": `, `{"`, `"}`, `"]`,
		`]]`, `}}`, `}]`, `[[`, `[{"`, `},{`, `,`, `, `, ",\n", "\n  ", ` `, `  `, "\t", `:`, `:"`, `[]`, `{}`, `[],[]`, `1,1`, `1, 2`, `,1`, `-`, `-0`, `0.`, `.5`, `00`, `1e5`, `e+`,
		`null`, `nul`, `true`, `truefalse`, `false]`, `a`, `aa`, `ab`, `a","a`, `"a","a"`, `"a":1`, `"a":1,"a":1`, `$`, `$ref`,
	} {
		texts = append(texts, []byte(text))
	}
	texts = append(texts, []byte(strings.Repeat("a", 2047)), []byte(strings.Repeat("a", 2048)), []byte(strings.Repeat("[", 300)), []byte(strings.Repeat(" ", 40)))
	for _, text := range samples {
		for range min(40, 2*len(text)) {
			from := r.IntN(len(text))
			texts = append(texts, []byte(text[from:min(len(text), from+1+r.IntN(9))]))
		}
	}
	return Of(texts)
}

// cut cuts a text into tokens of v, each of those that fit with equal chances.
func (v *Vocabulary) cut(r *rand.Rand, text string) (ids []int32) {
	for text != "" {
		var fit []int32
		for id, token := range v.Texts {
			if len(token) > 0 && strings.HasPrefix(text, string(token)) {
				fit = append(fit, int32(id))
			}
		}
		id := fit[r.IntN(len(fit))]
		ids, text = append(ids, id), text[len(v.Texts[id]):]
	}
	return ids
}
