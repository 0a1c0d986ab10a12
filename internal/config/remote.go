package config

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/hub"
)

// Getter brings a file of the hub, and says where it is on this machine.
type Getter func(ctx context.Context, ref hub.Ref) (path string, err error)

// Remote returns the file of the hub that the model's path names, if it does: as
// hf:OWNER/REPO or ollama:NAME, or by a name of the catalogue. Files of this machine go first.
func (m Model) Remote() (ref hub.Ref, ok bool, err error) {
	if _, err := os.Stat(m.Path); err == nil && !hub.IsName(m.Path) {
		return hub.Ref{}, false, nil
	}
	return hub.Resolve(m.Path)
}

// Get replaces a name of the hub by the file that get brings. The model keeps
// the name that it has in the API.
func (m *Model) Get(ctx context.Context, get Getter) error {
	ref, ok, err := m.Remote()
	if err != nil || !ok {
		return err
	}
	name := m.APIName()
	path, err := get(ctx, ref)
	if err != nil {
		return fmt.Errorf("model %s: %w", name, err)
	}
	m.Name, m.Path = name, path
	return m.ReadPublished(ref)
}

// ReadPublished reads what came with the model of ref, whose file is at Path, beside that file.
func (m *Model) ReadPublished(ref hub.Ref) error {
	text, err := ref.Parameters(m.Path)
	if err == nil && text != nil {
		m.Published, m.Warnings, err = sampling.FromOllama(text)
	}
	if err != nil {
		return fmt.Errorf("parameters of %s: %w", ref, err)
	}
	return nil
}

// Get replaces all names of the hub by files, of models, of verifiers, and of
// drafts unless nothing is drafted.
func (c *Config) Get(ctx context.Context, get Getter) error {
	drafts := []*string{&c.Engine.DraftModel}
	for i := range c.Models {
		if err := c.Models[i].Get(ctx, get); err != nil {
			return err
		}
		drafts = append(drafts, &c.Models[i].Draft)
	}
	for i := range c.Verifiers {
		if err := c.Verifiers[i].get(ctx, get); err != nil {
			return err
		}
	}
	if c.Engine.Speculation == batcher.SpeculateOff {
		return nil
	}
	for _, name := range drafts {
		if err := getDraft(ctx, name, get); err != nil {
			return err
		}
	}
	return nil
}

// get also takes the format from the catalogue, which a file of words alone
// does not say.
func (v *Verifier) get(ctx context.Context, get Getter) error {
	m := v.Model()
	if ref, ok, err := m.Remote(); err == nil && ok {
		e, _ := hub.Named(ref)
		v.Format = cmp.Or(v.Format, e.Format)
	}
	if v.IsProbe() {
		return nil
	}
	err := m.Get(ctx, get)
	v.Name, v.Path = m.Name, m.Path
	return err
}

// getDraft replaces the name of a draft model.
func getDraft(ctx context.Context, name *string, get Getter) error {
	if *name == "" || *name == noDraft {
		return nil
	}
	m := ModelNamed(*name)
	if err := m.Get(ctx, get); err != nil {
		return fmt.Errorf("draft %w", err)
	}
	*name = cmp.Or(m.Embedded, m.Path)
	return nil
}
