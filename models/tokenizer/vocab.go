package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// kind holds what a token is, as a set.
type kind uint8

const (
	control     kind = 1 << iota // steers the model, gives no text
	unknown                      // stands for text that has no token
	userDefined                  // text that is cut out before splitting into words
	byteToken                    // one byte, written <0xHH>
	endsTurn                     // ends a generation
	stripsRight                  // swallows the white space after it
	unused                       // a place holder, if text too
)

// kindOf maps the token types of the GGUF specification; normal and undefined tokens
// are plain text.
var kindOf = map[int]kind{2: unknown, 3: control, 4: userDefined, 5: unused, 6: byteToken}

// vocab is the list of tokens with what is known of each.
type vocab struct {
	tokens []string
	scores []float32 // nil where the file has none
	kinds  []kind
	ids    map[string]int32 // the first id of each text
	plain  map[string]int32 // likewise, of the tokens that plain text may become

	bos, eos, unk int32 // -1 for none
	sep           int32 // between the texts of a pair; -1 for none
	infill        Infill
	eogs          []int32

	pieces     []byte   // the text of all tokens, end to end
	ends       []uint32 // where each token's text ends in pieces
	stripFirst bool     // the encoder puts a space before the text
}

// The bounds of a vocabulary. Real ones have some 260,000 tokens and as many
// merges; their longest tokens are a few hundred bytes. Joining two symbols takes
// time in proportion to the token that they become.
const (
	maxTokens = 1 << 22
	maxToken  = 1 << 11 // bytes
	maxMerges = 1 << 22
)

// load reads tokens, types and scores.
func (v *vocab) load(md gguf.Metadata) error {
	tokens, ok := md.Strings("tokenizer.ggml.tokens")
	if !ok || len(tokens) == 0 {
		return errors.New("tokenizer: no tokenizer.ggml.tokens in the file")
	}
	if len(tokens) > maxTokens {
		return fmt.Errorf("tokenizer: %d tokens, at most %d are allowed", len(tokens), maxTokens)
	}
	if i := slices.IndexFunc(tokens, func(s string) bool { return len(s) > maxToken }); i >= 0 {
		return fmt.Errorf("tokenizer: token %d has %d bytes, at most %d are allowed", i, len(tokens[i]), maxToken)
	}
	types, typed := md.Ints("tokenizer.ggml.token_type")
	if typed && len(types) < len(tokens) {
		return fmt.Errorf("tokenizer: %d token types for %d tokens", len(types), len(tokens))
	}
	scores, scored := md.Floats("tokenizer.ggml.scores")
	if scored && len(scores) < len(tokens) {
		return fmt.Errorf("tokenizer: %d scores for %d tokens", len(scores), len(tokens))
	}
	v.tokens, v.scores = tokens, scores
	v.kinds = make([]kind, len(tokens))
	v.ids = make(map[string]int32, len(tokens))
	for i, text := range tokens {
		if typed {
			v.kinds[i] = kindOf[types[i]]
		}
		if _, dup := v.ids[text]; !dup && text != "" {
			v.ids[text] = int32(i)
		}
	}
	v.markTurnEnds()
	v.plain = make(map[string]int32, len(tokens))
	for i, text := range tokens {
		if _, dup := v.plain[text]; !dup && text != "" && v.kinds[i]&(control|unknown) == 0 {
			v.plain[text] = int32(i)
		}
	}
	return nil
}

// findIDs reads the ids of the special tokens, with the model's defaults, and
// completes the tokens that end a turn. An id outside the vocabulary
// counts as absent, with a warning.
func (t *Tokenizer) findIDs(md gguf.Metadata, bos, eos, unk int32) {
	v := &t.vocab
	id := func(name string, def int32) int32 {
		key := "tokenizer.ggml." + name + "_token_id"
		if n, ok := md.Int(key); ok && n >= 0 && n < len(v.tokens) {
			return int32(n)
		}
		if _, given := md[key]; given {
			t.warn("%s is %v, which is no token of %d: it is taken for absent", key, md[key], len(v.tokens))
		}
		if int(def) >= len(v.tokens) {
			return -1
		}
		return def
	}
	v.bos, v.eos, v.unk = id("bos", bos), id("eos", eos), id("unknown", unk)
	v.sep = id("seperator", v.eos) // as the specification spells it
	v.findInfill(id)
	if v.unk >= 0 && v.kinds[v.unk]&control != 0 {
		v.unk = -1 // plain text must not become a control token
	}
	for _, i := range []int32{v.eos, id("eot", -1), id("eom", -1)} {
		if i >= 0 {
			v.kinds[i] |= endsTurn
		}
	}
	for i, k := range v.kinds {
		if k&endsTurn != 0 {
			v.eogs = append(v.eogs, int32(i))
		}
	}
}

// turnEnds are the texts of tokens that end a turn whatever the file says of
// them, as published model families write them. Those that ordinary text may
// contain count only where the file marks them as special.
var turnEnds = map[string]bool{ // text → may occur in ordinary text
	"<|eot_id|>": false, "<|eom_id|>": false, "<|im_end|>": false, "<|end|>": false, "<|return|>": false,
	"<|call|>": false, "<|endoftext|>": false, "<|end_of_text|>": false, "<end_of_turn>": false,
	"<end_of_utterance>": false, "<turn|>": false, "<|tool_response>": false, "<｜end▁of▁sentence｜>": false, "<EOT>": true, "_<EOT>": true, "[EOT]": true,
	"[EOS]": true, "<eos>": true, "</s>": true, "<|file_sep|>": false, "<|fim_pad|>": false, "<|repo_name|>": false,
}

// EndsTurn tells whether a token of that name is known to end a turn.
func EndsTurn(name string) bool {
	_, ok := turnEnds[name]
	return ok
}

// markTurnEnds marks the well-known turn ends, as control tokens too.
func (v *vocab) markTurnEnds() {
	for text, ordinary := range turnEnds {
		i, ok := v.ids[text]
		if !ok || ordinary && v.kinds[i]&(control|userDefined) == 0 {
			continue
		}
		v.kinds[i] = v.kinds[i]&^userDefined | control | endsTurn
	}
	// Models that frame tool calls end a turn by <|return|> or <|call|>, and
	// only a message by <|end|>.
	if end, ok := v.ids["<|end|>"]; ok && v.has("<|return|>") && v.has("<|call|>") {
		v.kinds[end] &^= endsTurn
	}
}

func (v *vocab) has(text string) bool {
	_, ok := v.ids[text]
	return ok
}

// findSpecials gathers the texts that are cut out before splitting.
func (t *Tokenizer) findSpecials(md gguf.Metadata) {
	name, _ := md.String("general.name")
	name = strings.ToLower(name)
	// Phi-3 was trained with special tokens that swallow the white space after
	// them; the file has no key that says so.
	phi3 := strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
	for i, k := range t.kinds {
		if k&(control|userDefined|unknown) == 0 || t.ids[t.tokens[i]] != int32(i) {
			continue
		}
		t.special.insert(t.tokens[i], int32(i), k&userDefined == 0)
		if phi3 && !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, t.tokens[i]) {
			t.kinds[i] |= stripsRight
		}
	}
}

// byteOf returns the byte that a token such as <0x0A> stands for.
func byteOf(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// byteTokens returns the token of each byte, -1 for none.
func byteTokens(v *vocab) (tokens [256]int32) {
	for b := range tokens {
		tokens[b] = -1
	}
	for i, text := range v.tokens {
		if b, ok := byteOf(text); ok && v.kinds[i]&byteToken != 0 {
			tokens[b] = int32(i)
		}
	}
	return tokens
}

// Size returns the number of tokens; ids are 0 to Size()-1.
func (v *vocab) Size() int { return len(v.tokens) }

// Token returns the token's text as the file writes it, "" for an id out of range.
// In byte-level BPE the bytes of ordinary tokens are written in a private
// alphabet: use Piece for text.
func (v *vocab) Token(id int32) string {
	if !v.valid(id) {
		return ""
	}
	return v.tokens[id]
}

// BOS returns the token that begins a text, if the file names one.
func (v *vocab) BOS() (int32, bool) { return v.bos, v.bos >= 0 }

// EOS returns the token that ends a text, if the file names one.
func (v *vocab) EOS() (int32, bool) { return v.eos, v.eos >= 0 }

// Separator returns the token that ends the first text of a pair, if the file names one.
func (v *vocab) Separator() (int32, bool) { return v.sep, v.sep >= 0 }

// EOG reports whether the token ends a generation.
func (v *vocab) EOG(id int32) bool { return v.valid(id) && v.kinds[id]&endsTurn != 0 }

// EOGs returns all tokens that end a generation, in ascending order.
func (v *vocab) EOGs() []int32 { return slices.Clone(v.eogs) }

func (v *vocab) valid(id int32) bool { return id >= 0 && int(id) < len(v.tokens) }
