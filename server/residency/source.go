package residency

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/registry"
)

// Source is a model that can be loaded.
type Source struct {
	Name     string
	Aliases  []string
	Adapters []Adapter // of the model
	About    registry.About
	// Key tells one from another source of the same name: what it is loaded from, and how.
	Key string
	// Pinned models stay in memory, and are loaded before the server is ready. The first
	// source is pinned, whatever it says.
	Pinned bool
	// KeepAlive is the time that the model stays after its last request; negative: until room is needed; nil:
	// Options.KeepAlive.
	KeepAlive *time.Duration

	// Need returns how many bytes more would be taken if it were loaded now.
	Need func() (int64, error)
	// Load loads the model until ctx ends, and tells how many bytes have been read, of how many.
	Load func(ctx context.Context, progress func(done, total int64)) (*Resident, error)
}

// Adapter is an adapter of a source.
type Adapter struct{ Name, File string }

// Resident is a model in memory.
type Resident struct {
	registry.Served
	Bytes  int64  // that would be free without it
	Unload func() // frees them, once nobody uses the model; nil: it stays as long as the process
}

// unload frees them. Its error is a panic of Unload, after which the model is gone all the same.
func (r *Resident) unload() error {
	err := parallel.Try(func() error { r.Unload(); return nil })
	if err != nil {
		err = fmt.Errorf("while it was unloaded: %w", err)
	}
	return err
}

// Status says where a model is, in the words of llama-server.
type Status string

// What a model can be.
const (
	Unloaded Status = "unloaded"
	Loading  Status = "loading"
	Loaded   Status = "loaded"
)

// State describes a model.
type State struct {
	Source  *Source
	Status  Status
	Failed  bool            // the last attempt to load it has
	Model   *registry.Model // of a loaded one
	Bytes   int64           // that a loaded one takes
	Expires time.Time       // when a loaded one goes if nobody asks; zero: it stays
}

// Options bound what is in memory, and who waits for it.
type Options struct {
	// Room returns how many bytes may yet be taken; nil: any number.
	Room func() int64
	// KeepAlive serves sources without their own.
	KeepAlive time.Duration
	// Queue is the most requests that may wait for models; 0: none.
	Queue int
	// Changed is told, after the fact, of models that have come or gone; nil: nobody is.
	Changed func(name string, status Status, err error)
}

// adaptersOf returns the adapters of a model in memory.
func adaptersOf(m *registry.Served) (list []Adapter) {
	if m.Adapters == nil {
		return nil
	}
	for _, u := range m.Adapters.List {
		list = append(list, Adapter{u.Adapter.Name, filepath.Base(u.Adapter.Path)})
	}
	return list
}
