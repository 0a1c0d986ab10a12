package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

var oTiny = Ref{Owner: "library", Repo: "tiny", Tag: "9b-q2_0"}

const oParams = `{"temperature":0.6,"top_k":20,"stop":["<|im_end|>"]}`

// newOllama gives a bench's registry a model.
func newOllama(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.server.PutOllama("library/tiny", oTiny.Tag, hubtest.Layer{Kind: "model", Contents: b.file}, hubtest.Layer{Kind: "template", Contents: []byte("{{ .Prompt }}")},
		hubtest.Layer{Kind: "license", Contents: []byte("MIT")}, hubtest.Layer{Kind: "params", Contents: []byte(oParams)})
	return b
}

// answering gives every request for a manifest the text.
func (b *bench) answering(text string) {
	b.endpointOnly(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		_, _ = io.WriteString(w, text)
		return true
	})
}

func TestParseReadsNamesOfOllamasRegistry(t *testing.T) {
	for name, want := range map[string]struct {
		ref         Ref
		text, short string
	}{
		"ollama:tiny":                    {Ref{Owner: "library", Repo: "tiny", Tag: "latest"}, "ollama:tiny", "tiny"},
		"ollama:tiny:latest":             {Ref{Owner: "library", Repo: "tiny", Tag: "latest"}, "ollama:tiny", "tiny"},
		"ollama:library/tiny:9b-q2_0":    {oTiny, "ollama:tiny:9b-q2_0", "tiny:9b-q2_0"},
		"ollama:acme/Tiny_1.5:8b.Q4_K_M": {Ref{Owner: "acme", Repo: "Tiny_1.5", Tag: "8b.Q4_K_M"}, "ollama:acme/Tiny_1.5:8b.Q4_K_M", "Tiny_1.5:8b.Q4_K_M"},
	} {
		got, ok, err := Resolve(name)
		if err != nil || !ok || got != want.ref || got.String() != want.text || got.Name() != want.short {
			t.Errorf("Resolve(%q) = %+v, %v, called %s and %s", name, got, err, got, got.Name())
		}
		if folder, ok := refOf(filepath.Base((&Hub{}).folder(got).path)); !ok || folder != got {
			t.Errorf("%s is %+v, %v by its folder", name, folder, ok)
		}
	}
	for _, name := range []string{"ollama:", "ollama::tag", "ollama:tiny:", "ollama:a/b/c", "ollama:../x", "ollama:x:..", "ollama:x:a/b", "ollama:x:a:b", "ollama:a--b", "ollama:x:a--b",
		"ollama:x:\x00", "ollama:" + strings.Repeat("a", 81)} {
		if got, err := Parse(name); err == nil {
			t.Errorf("Parse(%q) = %+v", name, got)
		}
	}
}

func TestAModelOfOllamasRegistryIsPulledListedAndRemoved(t *testing.T) {
	b := newOllama(t)
	b.Hub = b.open(t, Options{Cache: b.Cache(), Token: "hf_secret"})
	if _, err := b.Find(oTiny); !errors.Is(err, ErrAbsent) {
		t.Fatalf("Find before Pull: %v", err)
	}
	last, total := int64(0), int64(0)
	path, err := b.Pull(t.Context(), oTiny, func(done, of int64) { last, total = done, of })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.file) {
		t.Errorf("%s has %d bytes, %v", path, len(got), err)
	}
	if want := int64(len(b.file) + len(oParams)); last != want || total != want {
		t.Errorf("it tells of %d bytes of %d, want %d", last, total, want)
	}
	if text, err := oTiny.Parameters(path); err != nil || string(text) != oParams {
		t.Errorf("parameters %q, %v", text, err)
	}
	if found, err := b.Find(oTiny); err != nil || found != path {
		t.Errorf("Find = %q, %v", found, err)
	}
	cdn := 0
	for _, r := range b.server.Requests() {
		if r.CDN {
			cdn++
		}
		if r.Authorization != "" {
			t.Errorf("the hub's token goes to %s", r.Path)
		}
	}
	if cdn == 0 {
		t.Error("nothing comes from the host to which the registry leads")
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Ref != oTiny || list[0].Path != path || list[0].Size != int64(len(b.file)) || list[0].Missing != 0 {
		t.Errorf("List = %+v, %v", list, err)
	}
	before := len(b.server.Requests())
	if again, err := b.Pull(t.Context(), oTiny, nil); err != nil || again != path || len(b.server.Requests()) != before+1 {
		t.Errorf("a second Pull = %q, %v after %d requests, want one for the manifest", again, err, len(b.server.Requests())-before)
	}
	if freed, err := b.Remove(oTiny); err != nil || freed < int64(len(b.file)) {
		t.Errorf("Remove = %d, %v", freed, err)
	}
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("List after Remove = %+v, %v", list, err)
	}
}

func TestANewerModelOfATagIsTaken(t *testing.T) {
	b := newOllama(t)
	if _, err := b.Pull(t.Context(), oTiny, nil); err != nil {
		t.Fatal(err)
	}
	newer := slices.Clone(b.file) // of the same size
	newer[0]++
	b.server.PutOllama("library/tiny", oTiny.Tag, hubtest.Layer{Kind: "model", Contents: newer})
	path, err := b.Pull(t.Context(), oTiny, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, newer) {
		t.Errorf("the older model is there: %v", err)
	}
	if text, err := oTiny.Parameters(path); err != nil || text != nil {
		t.Errorf("it has the parameters of the older one: %q, %v", text, err)
	}
	if found, err := b.Find(oTiny); err != nil || found != path {
		t.Errorf("Find = %q, %v, want %q", found, err, path)
	}
}

func TestAnInterruptedPullOfOllamasRegistryGoesOn(t *testing.T) {
	b := newOllama(t)
	ctx, interrupt := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	b.server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "bytes=3000-3999" || !isCDN(b.server, r) || ctx.Err() != nil {
			return false
		}
		<-r.Context().Done()
		close(stopped)
		return true
	}
	_, err := b.Pull(ctx, oTiny, func(done, total int64) {
		if done == total-1000 { // all but what the server holds back
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Pull = %v", err)
	}
	<-stopped
	if _, err := b.Find(oTiny); !errors.Is(err, ErrAbsent) {
		t.Errorf("half a model is found: %v", err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 || list[0].Ref != oTiny || list[0].Missing != 1000 {
		t.Errorf("List = %+v, %v", list, err)
	}
	before := len(b.server.Requests())
	if _, err := b.Pull(t.Context(), oTiny, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range b.server.Requests()[before:] {
		if r.CDN {
			got = append(got, r.Range)
		}
	}
	if !slices.Equal(got, []string{"bytes=3000-3999"}) {
		t.Errorf("the second pull asks for %q", got)
	}
}

func TestABlobThatHasAnotherDigestIsDeleted(t *testing.T) {
	b := newOllama(t)
	wrong := slices.Clone(b.file)
	wrong[7]++
	b.answering(strings.ReplaceAll(string(b.server.Manifest("library/tiny", oTiny.Tag)), hubtest.SHA256(b.file), hubtest.SHA256(wrong)))
	before := b.server.Before
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/blobs/sha256:"+hubtest.SHA256(wrong)) {
			http.Redirect(w, r, b.server.CDN+"/"+hubtest.SHA256(b.file)+"?signature=x", http.StatusTemporaryRedirect)
			return true
		}
		return before(w, r)
	}
	path, err := b.Pull(t.Context(), oTiny, nil)
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "ollama:tiny:9b-q2_0") {
		t.Errorf("Pull = %q, %v", path, err)
	}
	if _, err := b.Find(oTiny); !errors.Is(err, ErrAbsent) {
		t.Errorf("it is found: %v", err)
	}
	if left := ending(filepath.Join(b.folder(oTiny).path, "blobs"), incomplete); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestWhatOllamasRegistryRefusesIsSaidInWords(t *testing.T) {
	b := newOllama(t)
	for _, c := range []struct {
		status int
		says   string
	}{{404, "no such tag"}, {401, "private"}, {403, "private"}, {418, "418"}} {
		b.endpointOnly(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(c.status); return true })
		if _, err := b.Pull(t.Context(), oTiny, nil); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "Ollama") {
			t.Errorf("status %d: %v", c.status, err)
		}
	}
	b.server.Before = nil
	if _, err := b.Pull(t.Context(), Ref{Owner: "library", Repo: "tiny", Tag: "none"}, nil); err == nil || !strings.Contains(err.Error(), "there is no ollama:tiny:none in Ollama's registry") {
		t.Errorf("a tag that is not there: %v", err)
	}
}

func TestHostileManifestsAreRefused(t *testing.T) {
	hash := strings.Repeat("0", 64)
	layers := func(list ...string) string { return `{"layers":[` + strings.Join(list, ",") + `]}` }
	of := func(kind, digest string, size int64) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.%s","digest":%q,"size":%d}`, kind, digest, size)
	}
	model := of("model", "sha256:"+hash, 5)
	for what, text := range map[string]string{
		"no JSON":                      "<html>",
		"layers of another type":       `{"layers": 5}`,
		"a size of another type":       `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + hash + `","size":"5"}]}`,
		"nothing":                      `{}`,
		"no model":                     layers(of("params", "sha256:"+hash, 5)),
		"only tensors":                 layers(of("tensor; name=x", "sha256:"+hash, 5)),
		"two models":                   layers(model, model),
		"two layers of parameters":     layers(model, of("params", "sha256:"+hash, 5), of("params", "sha256:"+hash, 5)),
		"an adapter":                   layers(model, of("adapter", "sha256:"+hash, 5)),
		"a digest that is a path":      layers(of("model", "sha256:../../../../../../etc/passwd", 5)),
		"a digest with a path behind":  layers(of("model", "sha256:"+hash+"/../x", 5)),
		"a digest in capital letters":  layers(of("model", "sha256:"+strings.Repeat("A", 64), 5)),
		"another hash":                 layers(of("model", "sha512:"+hash, 5)),
		"no digest":                    layers(of("model", "", 5)),
		"parameters with a path":       layers(model, of("params", "sha256:..", 5)),
		"a negative size":              layers(of("model", "sha256:"+hash, -5)),
		"an empty model":               layers(of("model", "sha256:"+hash, 0)),
		"a size beyond all disks":      layers(of("model", "sha256:"+hash, 1<<62)),
		"parameters without an end":    layers(model, of("params", "sha256:"+hash, maxParams+1)),
		"more than can be read":        `{"layers":"` + strings.Repeat("x", maxManifest) + `"}`,
		"an escape sequence in digest": layers(of("model", "\x1b[2J", 5)),
	} {
		b := newOllama(t)
		b.answering(text)
		path, err := b.Pull(t.Context(), oTiny, nil)
		if err == nil || len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("%s: Pull = %q, %v", what, path, err)
		}
		if left, _ := os.ReadDir(b.Cache()); len(left) > 0 {
			t.Errorf("%s leaves %v", what, left)
		}
		for _, r := range b.server.Requests() {
			if strings.Contains(r.Path, "/blobs/") {
				t.Errorf("%s: it asks for %s", what, r.Path)
			}
		}
	}
}

func TestWhatIsNotReadOfOllamasRegistryIsTold(t *testing.T) {
	b := newOllama(t)
	var told []string
	b.Hub = b.open(t, Options{Cache: b.Cache(), Unused: func(what string) { told = append(told, what) }})
	b.server.PutOllama("acme/eyes", "latest", hubtest.Layer{Kind: "projector", Contents: []byte("GGUF of eyes")}, hubtest.Layer{Kind: "model", Contents: b.file},
		hubtest.Layer{Kind: "system", Contents: []byte("Be brief.")}, hubtest.Layer{Kind: "license", Contents: []byte("MIT")})
	path, err := b.Pull(t.Context(), Ref{Owner: "acme", Repo: "eyes", Tag: "latest"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.file) {
		t.Errorf("the model is not there: %v", err)
	}
	if len(told) != 2 || !strings.Contains(told[0], "ollama:acme/eyes: its projector") || !strings.Contains(told[1], "system prompt") {
		t.Errorf("it tells %q", told)
	}
}
