package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
)

// OllamaScheme begins the names of models in Ollama's registry.
const OllamaScheme = "ollama:"

// defaultRegistry is the public registry. It speaks a part of the protocol of Docker's:
// https://distribution.github.io/distribution/spec/api/
const defaultRegistry = "https://registry.ollama.ai"

// The words that a name in Ollama's registry goes without.
const (
	library   = "library" // the namespace of Ollama's own models
	latestTag = "latest"
)

// maxOllamaWord bounds each word of a name, as Ollama does.
const maxOllamaWord = 80

// The files of a snapshot of Ollama's registry, whose layers have no names.
const (
	paramsFile = "params.json"
	layerFile  = "model.gguf"
)

const (
	maxManifest = 4 << 20  // bytes of a manifest
	maxParams   = 64 << 10 // bytes of a model's parameters
)

// manifestType is the media type of a manifest.
const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

// layerTypes begins the media types of the layers.
const layerTypes = "application/vnd.ollama.image."

// unused are the layers that change answers, or what can be asked, and are not read. The chat
// template is the GGUF file's.
var unused = map[string]string{
	"projector": "its projector is not used: images are not read",
	"system":    "its system prompt is not used: give your own",
	"messages":  "its messages are not used: conversations begin empty",
}

// parseOllama reads ollama:[NAMESPACE/]NAME[:TAG].
func parseOllama(name string) (Ref, error) {
	repo, tag, tagged := strings.Cut(strings.TrimPrefix(name, OllamaScheme), ":")
	r := Ref{Owner: library, Repo: repo, Tag: latestTag}
	if owner, rest, ok := strings.Cut(repo, "/"); ok {
		r.Owner, r.Repo = owner, rest
	}
	if tagged {
		r.Tag = tag
	}
	for _, word := range []string{r.Owner, r.Repo, r.Tag} {
		if !validOllamaWord(word) {
			return Ref{}, fmt.Errorf("%q names no model of Ollama's registry; want ollama:NAME, ollama:NAME:TAG or ollama:NAMESPACE/NAME:TAG", brief(name))
		}
	}
	return r, nil
}

func validOllamaWord(w string) bool { return len(w) <= maxOllamaWord && validRepoWord(w) }

// tagged returns a model's name with its tag, as Ollama writes it, without the namespace.
func (r Ref) tagged() string {
	if r.Tag == latestTag {
		return r.Repo
	}
	return r.Repo + ":" + r.Tag
}

// manifest is the registry's description of a model.
type manifest struct {
	Layers []layer `json:"layers"`
}

type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"` // sha256:HEX
	Size      int64  `json:"size"`
}

// findOllama asks what the files of a model are: the parameters, if it has any, and the GGUF.
func (c *client) findOllama(ctx context.Context, ref Ref) ([]remote, error) {
	text, err := c.text(ctx, ref, c.at("v2", ref.Owner, ref.Repo, "manifests", ref.Tag), http.Header{"Accept": {manifestType}}, "the manifest of "+ref.String(), maxManifest)
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("the manifest of %s is no JSON that could be read: %w", ref, err)
	}
	models, params, err := c.layers(ref, m.Layers)
	switch {
	case err != nil:
		return nil, err
	case len(models) == 0:
		return nil, fmt.Errorf("%s has no GGUF file in Ollama's registry: Ollama runs it elsewhere, or from other files", ref)
	case len(models) > 1 || len(params) > 1:
		return nil, fmt.Errorf("%s has %d GGUF files and %d of parameters in Ollama's registry, one of each is read", ref, len(models), len(params))
	}
	sum := sha256.Sum256(text)
	var files []remote
	for _, l := range params {
		files = append(files, c.layer(ref, paramsFile, hex.EncodeToString(sum[:]), l))
	}
	return append(files, c.layer(ref, layerFile, hex.EncodeToString(sum[:]), models[0])), nil
}

// layers returns the layers that are read, and tells of those that are not.
func (c *client) layers(ref Ref, all []layer) (models, params []layer, err error) {
	for _, l := range all {
		kind, ours := strings.CutPrefix(l.MediaType, layerTypes)
		limit := int64(maxSize)
		if !ours {
			continue
		}
		switch kind {
		case "adapter":
			return nil, nil, fmt.Errorf("%s is an adapter upon other weights, which is not read from Ollama's registry: convert it to GGUF, and name it among models[].adapters", ref)
		case "model":
			models = append(models, l)
		case "params":
			params, limit = append(params, l), maxParams
		default:
			if why := unused[kind]; why != "" && c.unused != nil {
				c.unused(ref.String() + ": " + why)
			}
			continue
		}
		if hash, ok := strings.CutPrefix(l.Digest, "sha256:"); !ok || !sha256Hash.MatchString(hash) {
			return nil, nil, fmt.Errorf("the manifest of %s names the digest %q, which is refused", ref, brief(l.Digest))
		}
		if l.Size < 1 || l.Size > limit {
			return nil, nil, fmt.Errorf("the manifest of %s has a layer (%s) of %d bytes, which is refused: 1 to %d are read", ref, kind, l.Size, limit)
		}
	}
	return models, params, nil
}

// layer describes a layer as a file of a snapshot.
func (c *client) layer(ref Ref, file, commit string, l layer) remote {
	of := ref
	of.File = file
	return remote{ref: of, commit: commit, etag: strings.TrimPrefix(l.Digest, "sha256:"), size: l.Size, url: c.at("v2", ref.Owner, ref.Repo, "blobs", l.Digest)}
}

// ollamaRefusal returns the error that the registry's status means.
func ollamaRefusal(ref Ref, a *answer) error {
	switch a.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("there is no %s in Ollama's registry: no such model, or no such tag of it", ref)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s is not for strangers in Ollama's registry: it is private, or there is none", ref)
	}
	return passing(a.Response, fmt.Errorf("the registry of Ollama answers %s", a.Status))
}

// Parameters returns the parameters that came with a model of Ollama's registry, as JSON; nil:
// none did. The model's file is at path.
func (r Ref) Parameters(path string) ([]byte, error) {
	if r.Tag == "" {
		return nil, nil
	}
	text, err := readPlain(filepath.Join(filepath.Dir(path), paramsFile), maxParams)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
