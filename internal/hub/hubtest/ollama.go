package hubtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Layer is a part of a model of Ollama's registry.
type Layer struct {
	Kind     string // of application/vnd.ollama.image.KIND
	Contents []byte
}

// PutOllama gives Ollama's registry a model, whose name is NAMESPACE/NAME. The registry is at
// URL; it leads from blobs to the CDN, as the hub does.
func (h *Hub) PutOllama(name, tag string, layers ...Layer) {
	type layer struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int    `json:"size"`
	}
	var list []layer
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range layers {
		hash := SHA256(l.Contents)
		h.blobs[hash] = l.Contents
		list = append(list, layer{"application/vnd.ollama.image." + l.Kind, "sha256:" + hash, len(l.Contents)})
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "layers": list})
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	h.manifests[name+":"+tag] = text
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

// Manifest returns what the registry says of a model.
func (h *Hub) Manifest(name, tag string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.manifests[name+":"+tag]
}

// registry answers for manifests, and leads from blobs to the CDN. The caller has the lock.
func (h *Hub) registry(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/") // NAMESPACE, NAME, manifests or blobs, which
	if len(path) != 4 {
		refuse(w, http.StatusNotFound, "")
		return
	}
	name, which := path[0]+"/"+path[1], path[3]
	text, ok := h.manifests[name+":"+which]
	hash, digest := strings.CutPrefix(which, "sha256:")
	switch {
	case path[2] == "manifests" && ok && r.Header.Get("Accept") == manifestType:
		w.Header().Set("Content-Type", manifestType)
		_, _ = w.Write(text) // the test sees what is missing
	case path[2] == "blobs" && digest && h.blobs[hash] != nil:
		http.Redirect(w, r, h.CDN+"/"+hash+"?signature=secret", http.StatusTemporaryRedirect)
	default:
		refuse(w, http.StatusNotFound, "")
	}
}
