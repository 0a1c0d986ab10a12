package huggingface

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/safetensors"
)

// The files of sentence-transformers, and the place of the pooling's file in older versions.
const (
	fileModules = "modules.json"
	filePooling = "1_Pooling/config.json"
)

// maxModules bounds what a text goes through.
const maxModules = 16

// pooling reads how sentence-transformers makes a vector of a text, if the directory says so.
// Vectors have a length of one, whether a module says so or not.
func (k *keys) pooling() {
	if k.arch.encoder && strings.Contains(k.classes(), "ForSequenceClassification") {
		k.set("pooling_type", uint32(pooledByHead))
		return
	}
	file := filePooling
	for _, m := range k.modules() {
		kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		inside := m.Path != "" && !path.IsAbs(m.Path) && path.Clean("/" + m.Path)[1:] == m.Path
		switch {
		case kind == "Transformer" && m.Path == "", kind == "Normalize":
		case kind == "Pooling" && inside:
			file = path.Join(m.Path, fileConfig)
		case kind == "Dense" && inside && len(k.dense) < len(denseNames):
			k.dense = append(k.dense, m.Path)
		default:
			k.fail("%s: module %.80q at %.80q: %w: only Transformer, Pooling, Normalize and two Dense are read", fileModules, m.Type, m.Path, ErrUnsupported)
			return
		}
	}
	v := k.read(file, false)
	mode := v.text("pooling_mode", "")
	is := func(name, flag string) bool { return mode == name || v.flag("pooling_mode_"+flag, false) }
	switch {
	case v.m == nil && k.arch.encoder: // as sentence-transformers reads a directory that does not say
		k.set("pooling_type", uint32(1))
	case v.m == nil:
	case is("lasttoken", "lasttoken"):
		k.set("pooling_type", uint32(3))
	case is("mean", "mean_tokens"):
		k.set("pooling_type", uint32(1))
	case is("cls", "cls_token"):
		k.set("pooling_type", uint32(2))
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
func (k *keys) modules() (list []module) {
	text, ok := k.text(fileModules, maxText)
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, &list); err != nil {
		k.fail("%s: %w", fileModules, err)
	} else if len(list) > maxModules {
		k.fail("%s: %d modules, at most %d are read", fileModules, len(list), maxModules)
	}
	if k.err != nil {
		return nil
	}
	return list
}

// denseNames are GGUF's names of the matrices of Dense modules, in their order.
var denseNames = []string{"dense_2", "dense_3"}

// projection adds the matrices of Dense modules, which make vectors of pooled hidden states.
func (b *builder) projection() {
	for i, folder := range b.dense {
		v := b.read(path.Join(folder, fileConfig), true)
		v.only("activation_function", "torch.nn.modules.linear.Identity")
		if v.flag("bias", true) {
			v.fail("bias", "is true: %w", ErrUnsupported)
		}
		in, out := v.count("in_features", 1, maxDim, required), v.count("out_features", 1, maxDim, required)
		if b.err != nil {
			return
		}
		m, err := safetensors.Open(filepath.Join(b.dir, filepath.FromSlash(folder)))
		if err != nil {
			b.fail("%s: %w", folder, err)
			return
		}
		b.files = append(b.files, m.Files...)
		t := m.Tensor("linear.weight")
		if t == nil || len(m.Tensors) != 1 || !slices.Equal(t.Shape, []int{out, in}) {
			b.fail("%s: %w: it must hold linear.weight of shape [%d %d], and no other tensor", folder, safetensors.ErrFormat, out, in)
			return
		}
		b.set(denseNames[i]+"_feat_in", uint32(in))
		b.set(denseNames[i]+"_feat_out", uint32(out))
		b.addTensor(&stack{name: denseNames[i] + ".weight", parts: []*safetensors.Tensor{t}, dims: fastestFirst(t.Shape)})
	}
}
