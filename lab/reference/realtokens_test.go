package reference

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// unlike are the strings that a tokenizer may cut otherwise than its reference, with the reason.
var unlike = map[string]struct {
	most int
	why  string
}{
	"deepseek_v3": {10, "its rules ask for letters and symbols, and the reference knows none of Unicode 16"},
	"minilm":      {3, "the reference has the accents and punctuation of an older Unicode"},
}

func TestPublicTokenizersCutOddStringsAsTheirReferences(t *testing.T) {
	dir := filepath.Dir(realModel(t, "tokenizers"))
	var want struct {
		Strings    []string
		Tokenizers map[string]string // little-endian, the lower half of the CRC-32 of the ids of each string
	}
	recorded(t, "strings.json.gz", &want)
	if len(want.Strings) != 2000 || len(want.Tokenizers) < 11 {
		t.Fatalf("%d strings, %d tokenizers", len(want.Strings), len(want.Tokenizers))
	}
	for name, sums := range want.Tokenizers {
		t.Run(name, func(t *testing.T) {
			f := publicVocabulary(t, dir, name)
			defer f.Close()
			tok, err := tokenizer.New(f.Metadata)
			if err != nil {
				t.Fatal(err)
			}
			crc, err := base64.StdEncoding.DecodeString(sums)
			if err != nil || len(crc) != 2*len(want.Strings) {
				t.Fatalf("%d bytes, %v", len(crc), err)
			}
			differ := 0
			var ids []int32
			var text []byte
			for i, s := range want.Strings {
				ids = tok.Encode(ids[:0], s, tokenizer.Options{ParseSpecial: true})
				text = text[:0]
				for _, id := range ids {
					text = binary.LittleEndian.AppendUint32(text, uint32(id))
				}
				if uint16(crc32.ChecksumIEEE(text)) != binary.LittleEndian.Uint16(crc[2*i:]) {
					if differ++; differ <= 5 {
						t.Logf("%q = %v", s, ids)
					}
				}
			}
			if differ > unlike[name].most {
				t.Errorf("%d of %d strings are cut otherwise, want at most %d (%s)", differ, len(want.Strings), unlike[name].most, cmp.Or(unlike[name].why, "none may be"))
			}
		})
	}
}

// publicVocabulary opens a GGUF file, a directory of a model, or a tokenizer.json, beside which it writes a
// model whose weights are zero.
func publicVocabulary(t testing.TB, dir, name string) *gguf.File {
	t.Helper()
	if strings.HasSuffix(name, ".gguf") {
		f, err := gguf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	from := filepath.Join(dir, "tokenizers", name)
	if name == "minilm" {
		from = filepath.Join(dir, name)
	} else {
		from = withoutWeights(t, from)
	}
	f, err := huggingface.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// withoutWeights returns a directory with the tokenizer of from, and an embedding of zeros.
func withoutWeights(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		if err := os.Symlink(filepath.Join(from, file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	const rows, cols = 1<<18 + 128, 2
	config := map[string]any{
		"model_type": "llama", "vocab_size": rows, "hidden_size": cols, "num_hidden_layers": 1, "intermediate_size": cols,
		"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": cols, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
		"rope_theta": 1e4, "hidden_act": "silu", "tie_word_embeddings": true,
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	header, err := json.Marshal(map[string]any{"model.embed_tokens.weight": map[string]any{"dtype": "F16", "shape": []int{rows, cols}, "data_offsets": []int{0, 2 * rows * cols}}})
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(append(file, header...), make([]byte, 2*rows*cols)...)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
