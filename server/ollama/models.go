package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/tts"
)

// Version is the version of Ollama's API that is spoken here.
const Version = "0.12.11"

// Tag is how long the name of a model is in Ollama's API: clients add it to names
// that have none.
const Tag = ":latest"

// Card describes a model in lists.
type Card struct {
	Name       string  `json:"name"`
	Model      string  `json:"model"`
	ModifiedAt string  `json:"modified_at"`
	Size       int64   `json:"size"` // bytes of weights in memory
	Digest     string  `json:"digest"`
	Details    Details `json:"details"`

	// Of models that are loaded.
	ExpiresAt string `json:"expires_at,omitempty"`
	VRAM      *int64 `json:"size_vram,omitempty"`
	Context   int    `json:"context_length,omitempty"`
}

// Details are what a model is.
type Details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

// NewCard describes a model under a name. loaded adds what /api/ps says of it.
func NewCard(name string, m *tts.Model, since time.Time, loaded bool) Card {
	digest := sha256.Sum256([]byte(m.Name)) // the file is not read again to hash it
	c := Card{Name: name + Tag, Model: name + Tag, ModifiedAt: since.UTC().Format(time.RFC3339), Size: m.Config.Bytes, Digest: hex.EncodeToString(digest[:]), Details: NewDetails(m)}
	if loaded {
		c.ExpiresAt, c.VRAM, c.Context = since.UTC().AddDate(100, 0, 0).Format(time.RFC3339), new(int64(0)), m.Context
	}
	return c
}

// NewDetails are those of a model.
func NewDetails(m *tts.Model) Details {
	return Details{Format: "gguf", Family: m.Config.Arch, Families: []string{m.Config.Arch}, Parameters: size(m.Config.Params), Quantization: m.Config.Packings}
}

// size is a number of weights in words.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fK", float64(n)/1e3)
}

// Shown is what /api/show says of a model.
type Shown struct {
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      Details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	ModifiedAt   string         `json:"modified_at"`
}

// NewShown describes a model, which may be made for vectors of texts.
func NewShown(m *tts.Model, embeds bool, since time.Time) Shown {
	c := &m.Config
	s := Shown{Modelfile: "FROM " + m.Name + "\n", Details: NewDetails(m), ModifiedAt: since.UTC().Format(time.RFC3339), Capabilities: []string{"completion", "tools"}, Info: map[string]any{
		"general.architecture": c.Arch, "general.parameter_count": c.Params, c.Arch + ".block_count": c.Layers, c.Arch + ".embedding_length": c.Hidden,
		c.Arch + ".feed_forward_length": c.FFN, c.Arch + ".attention.head_count": c.Heads, c.Arch + ".attention.head_count_kv": c.KVHeads,
		c.Arch + ".context_length": m.Context, c.Arch + ".vocab_size": c.Vocab,
	}}
	if !c.Generates() {
		if s.Capabilities = []string{}; embeds {
			s.Capabilities = append(s.Capabilities, "embedding")
		}
		return s
	}
	if m.Template != nil {
		s.Template = m.Template.Source()
	}
	if m.Thinks() {
		s.Capabilities = append(s.Capabilities, "thinking")
	}
	return s
}
