package hexagon

import (
	"fmt"
	"strings"
)

// kind is a device that can be asked for by name.
type kind struct {
	name  string
	check func() error // says what this machine lacks; nil: nothing
	open  Opener
}

// Kinds are the names that Open takes.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Open makes the backend of that name. It reports at once what is missing for it; the
// device itself is made by Start.
func Open(name string, opt Options) (*Backend, error) {
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		if k.check != nil {
			if err := k.check(); err != nil {
				return nil, fmt.Errorf("the backend %s cannot run here: %w", name, err)
			}
		}
		return New(name, k.open, opt), nil
	}
	return nil, fmt.Errorf("there is no backend %q; have %s", name, strings.Join(Kinds(), ", "))
}

var kinds = []kind{}
