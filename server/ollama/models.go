package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
)

// version is the version of Ollama's API that is spoken here.
const version = "0.12.11"

// card describes a model in lists.
type card struct {
	Name       string  `json:"name"`
	Model      string  `json:"model"`
	ModifiedAt string  `json:"modified_at"`
	Size       int64   `json:"size"` // bytes of weights in memory
	Digest     string  `json:"digest"`
	Details    details `json:"details"`

	// Of models that are loaded.
	ExpiresAt string `json:"expires_at,omitempty"`
	VRAM      *int64 `json:"size_vram,omitempty"`
	Context   int    `json:"context_length,omitempty"`
}

// details are what a model is.
type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

// newCard describes a model under a name. loaded adds what /api/ps says of it.
func newCard(name string, m *tts.Model, since time.Time, loaded bool) card {
	digest := sha256.Sum256([]byte(m.Name)) // the file is not read again to hash it
	c := card{Name: name + registry.Tag, Model: name + registry.Tag, ModifiedAt: since.UTC().Format(time.RFC3339), Size: m.Config.Bytes, Digest: hex.EncodeToString(digest[:]), Details: newDetails(m)}
	if loaded {
		c.ExpiresAt, c.VRAM, c.Context = since.UTC().AddDate(100, 0, 0).Format(time.RFC3339), new(int64(0)), m.Context
	}
	return c
}

// newDetails returns those of a model.
func newDetails(m *tts.Model) details {
	return details{Format: "gguf", Family: m.Config.Arch, Families: []string{m.Config.Arch}, Parameters: size(m.Config.Params), Quantization: m.Config.Packings}
}

// size returns a number of weights in words.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fK", float64(n)/1e3)
}

// shown is what /api/show says of a model.
type shown struct {
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	ModifiedAt   string         `json:"modified_at"`
}

// newShown describes a model, which may be made for vectors of texts.
func newShown(m *tts.Model, embeds bool, since time.Time) shown {
	c := &m.Config
	s := shown{Modelfile: "FROM " + m.Name + "\n", Details: newDetails(m), ModifiedAt: since.UTC().Format(time.RFC3339), Capabilities: []string{"completion", "tools"}, Info: map[string]any{
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
