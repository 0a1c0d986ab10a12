package engines

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// shelf has the models that are loaded, each once for all who use it: under several names, or to
// draft. Engines of one arbiter step one at a time, so that they may run one model.
type shelf struct {
	mu   sync.Mutex
	held map[string][]*held       // by the file and the way of loading; several: with different contexts
	of   map[*models.Bundle]*held // by the result of take
}

// held is a model that is loaded.
type held struct {
	key    string
	bundle *models.Bundle
	users  int
}

func newShelf() *shelf {
	return &shelf{held: map[string][]*held{}, of: map[*models.Bundle]*held{}}
}

// KeyOf tells what a model is loaded from, and how: equal ones have the same weights. Empty: of
// one that nothing else is equal to.
func KeyOf(m config.Model) string {
	if m.Backend != "" && m.Backend != config.CPU {
		return ""
	}
	how := fmt.Sprintf("%s %v", m.Packed(), m.Metadata)
	if m.Embedded != "" {
		return m.Embedded + " " + how
	}
	path, err := filepath.EvalSymlinks(m.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	files := []string{path}
	if huggingface.Is(path) {
		within, _ := filepath.Glob(filepath.Join(path, "*")) // an error: a name of odd characters
		files = append(files, within...)
	}
	for _, file := range files {
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil {
			return ""
		}
		how += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return path + " " + how
}

// find returns a model that is loaded, for a context; nil if it is not.
func (s *shelf) find(key string, context int) *models.Bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, b := s.within(key, context)
	if h == nil {
		return nil
	}
	return s.use(h, b)
}

// has tells whether a model is loaded that a context can use.
func (s *shelf) has(key string, context int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, _ := s.within(key, context)
	return h != nil
}

// within finds a model that is loaded, and what it is for a context. It needs mu.
func (s *shelf) within(key string, context int) (*held, *models.Bundle) {
	for _, h := range s.held[key] {
		if b, ok := h.bundle.Within(context); ok {
			return h, b
		}
	}
	return nil, nil
}

// users returns how many use a model.
func (s *shelf) users(b *models.Bundle) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.of[b]; h != nil {
		return h.users
	}
	return 0
}

// put notes a model that has been loaded, and returns it for the first who uses it.
func (s *shelf) put(key string, b *models.Bundle) *models.Bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &held{key: key, bundle: b}
	if key != "" {
		s.held[key] = append(s.held[key], h)
	}
	own := *b
	return s.use(h, &own)
}

// use returns b, a copy of a model's bundle, for one more user, whose name for it is its own. It
// needs mu.
func (s *shelf) use(h *held, b *models.Bundle) *models.Bundle {
	h.users++
	s.of[b] = h
	return b
}

// give takes a model back, and frees it once nobody uses it.
func (s *shelf) give(b *models.Bundle) error {
	s.mu.Lock()
	h := s.of[b]
	delete(s.of, b)
	if h.users--; h.users > 0 {
		s.mu.Unlock()
		return nil
	}
	if rest := slices.DeleteFunc(s.held[h.key], func(g *held) bool { return g == h }); len(rest) > 0 {
		s.held[h.key] = rest
	} else {
		delete(s.held, h.key)
	}
	s.mu.Unlock()
	return h.bundle.Close()
}

// each calls do with each model once. Meanwhile none is freed.
func (s *shelf) each(do func(*models.Bundle)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[*held]bool{}
	for _, h := range s.of {
		if !seen[h] {
			seen[h] = true
			do(h.bundle)
		}
	}
}
