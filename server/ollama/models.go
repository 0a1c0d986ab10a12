package ollama

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
)

// version is the version of Ollama's API that is spoken here.
const version = "0.12.11"

// card describes a model in lists.
type card struct {
	Name       string  `json:"name"`
	Model      string  `json:"model"`
	ModifiedAt string  `json:"modified_at"`
	Size       int64   `json:"size"` // bytes in memory, or of the file
	Digest     string  `json:"digest"`
	Details    details `json:"details"`

	// Of models that are loaded.
	ExpiresAt string `json:"expires_at,omitempty"`
	VRAM      *int64 `json:"size_vram,omitempty"`
	Context   int    `json:"context_length,omitempty"`
}

// details describe a model.
type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

// newCard describes a model under a name, that the server has had since then.
func newCard(name string, st *residency.State, since time.Time) card {
	digest := sha256.Sum256([]byte(st.Source.Name)) // the file is not read again to hash it
	if at := st.Source.About.Modified; !at.IsZero() {
		since = at
	}
	c := card{Name: name + registry.Tag, Model: name + registry.Tag, ModifiedAt: since.UTC().Format(time.RFC3339), Size: st.Source.About.Size, Digest: hex.EncodeToString(digest[:]), Details: newDetails(st)}
	if st.Model != nil && c.Size == 0 {
		c.Size = st.Model.Config.Bytes
	}
	return c
}

// newLoaded describes a model in memory.
func newLoaded(st *residency.State) card {
	now := time.Now()
	c := newCard(st.Source.Name, st, now)
	c.Size, c.VRAM, c.Context = st.Bytes, new(int64(0)), st.Model.Context
	if at := st.Expires; at.IsZero() {
		c.ExpiresAt = now.UTC().AddDate(100, 0, 0).Format(time.RFC3339)
	} else {
		c.ExpiresAt = at.UTC().Format(time.RFC3339Nano)
	}
	return c
}

// newDetails returns the details of a model.
func newDetails(st *residency.State) details {
	a := st.Source.About
	if m := st.Model; m != nil {
		a.Arch, a.Params, a.Quantization = m.Config.Arch, m.Config.Params, cmp.Or(a.Quantization, m.Config.Packings)
	}
	return details{Format: "gguf", Family: a.Arch, Families: []string{a.Arch}, Parameters: size(a.Params), Quantization: a.Quantization}
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

// shown is the answer of /api/show.
type shown struct {
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	ModifiedAt   string         `json:"modified_at"`
}

// newShown describes a model that the server has had since then. Of one that is not in memory
// less is known.
func newShown(st *residency.State, since time.Time) shown {
	c := newCard(st.Source.Name, st, since)
	s := shown{Modelfile: "FROM " + st.Source.Name + "\n", Details: c.Details, ModifiedAt: c.ModifiedAt, Capabilities: []string{}}
	if st.Model == nil {
		a := &st.Source.About
		s.Info = map[string]any{"general.architecture": a.Arch, "general.parameter_count": a.Params, a.Arch + ".context_length": a.Context}
		switch a.Task {
		case registry.TaskGenerate, "":
			s.Capabilities = append(s.Capabilities, "completion")
		case registry.TaskEmbed:
			s.Capabilities = append(s.Capabilities, "embedding")
		}
		return s
	}
	m := st.Model
	d := &m.Config
	s.Info = map[string]any{
		"general.architecture": d.Arch, "general.parameter_count": d.Params, d.Arch + ".block_count": d.Layers, d.Arch + ".embedding_length": d.Hidden,
		d.Arch + ".feed_forward_length": d.FFN, d.Arch + ".attention.head_count": d.Heads, d.Arch + ".attention.head_count_kv": d.KVHeads,
		d.Arch + ".context_length": m.Context, d.Arch + ".vocab_size": d.Vocab,
	}
	switch {
	case m.Embed != nil:
		s.Capabilities = append(s.Capabilities, "embedding")
	case d.Generates():
		s.Capabilities = append(s.Capabilities, "completion", "tools")
		if m.Template != nil {
			s.Template = m.Template.Source()
		}
		if m.Thinks() {
			s.Capabilities = append(s.Capabilities, "thinking")
		}
	}
	return s
}
