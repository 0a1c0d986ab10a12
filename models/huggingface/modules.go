package huggingface

import (
	"encoding/json"
	"path"
	"strings"
)

// The files of sentence-transformers, and where older versions have that of the pooling.
const (
	fileModules = "modules.json"
	filePooling = "1_Pooling/config.json"
)

// maxModules bounds what a text goes through.
const maxModules = 16

// pooling reads how sentence-transformers makes a vector of a text, if the directory says so.
// Vectors have a length of one, whether a module says so or not.
func (b *builder) pooling() {
	if b.arch.encoder && strings.Contains(b.classes(), "ForSequenceClassification") {
		b.set("pooling_type", uint32(pooledByHead))
		return
	}
	file := filePooling
	for _, m := range b.modules() {
		kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		switch {
		case kind == "Transformer" && m.Path == "", kind == "Normalize":
		case kind == "Pooling":
			if file = path.Join(m.Path, fileConfig); !path.IsAbs(file) && path.Clean("/" + file)[1:] == file {
				continue
			}
			fallthrough
		default:
			b.fail("%s: module %.80q at %.80q: %w: only Transformer, Pooling and Normalize are read", fileModules, m.Type, m.Path, ErrUnsupported)
			return
		}
	}
	v := b.read(file, false)
	mode := v.text("pooling_mode", "")
	is := func(name, flag string) bool { return mode == name || v.flag("pooling_mode_"+flag, false) }
	switch {
	case v.m == nil && b.arch.encoder: // as sentence-transformers reads a directory that does not say
		b.set("pooling_type", uint32(1))
	case v.m == nil:
	case is("lasttoken", "lasttoken"):
		b.set("pooling_type", uint32(3))
	case is("mean", "mean_tokens"):
		b.set("pooling_type", uint32(1))
	case is("cls", "cls_token"):
		b.set("pooling_type", uint32(2))
	default:
		v.fail("pooling_mode_*", "names none of lasttoken, mean_tokens and cls_token: %w", ErrUnsupported)
	}
}

// module is a step of sentence-transformers.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// modules reads modules.json; none: it is not there.
func (b *builder) modules() (list []module) {
	text, ok := b.text(fileModules, maxText)
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, &list); err != nil {
		b.fail("%s: %w", fileModules, err)
	} else if len(list) > maxModules {
		b.fail("%s: %d modules, at most %d are read", fileModules, len(list), maxModules)
	}
	if b.err != nil {
		return nil
	}
	return list
}
