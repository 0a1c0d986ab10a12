package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/server"
)

// withHub gives commands a hub with a model in three repositories, and an empty
// cache.
func withHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.New(t)
	model := tinyModel(t)
	for _, name := range []string{"bonsai-1.7b", "bitnet-2b"} {
		e, ok := hub.Lookup(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		h.Put(e.Ref.ID(), e.Ref.File, model)
	}
	h.Put("acme/Tiny-GGUF", "Tiny-Q8_0.gguf", model)
	h.Put("acme/Tiny-GGUF", "Tiny-F16.gguf", []byte("<html>"))
	for key, v := range hubEnvironment(t, h) {
		t.Setenv(key, v)
	}
	return h
}

func hubEnvironment(t *testing.T, h *hubtest.Hub) map[string]string {
	return map[string]string{"HF_ENDPOINT": h.URL, "LUTRA_OLLAMA_REGISTRY": h.URL, "HF_HOME": t.TempDir(), "HF_HUB_CACHE": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "NO_PROXY": "*"}
}

func TestAModelOfTheHubIsDownloadedBeforeItIsServed(t *testing.T) {
	h := withHub(t)
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "bonsai-1.7b", "--model", "hf:acme/Tiny-GGUF", "--model", "mine=hf:acme/Tiny-GGUF:Q8_0")
	names := s.models(t)
	for _, want := range []string{"bonsai-1.7b", "Tiny", "mine"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among the models %q", want, names)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range s.log {
		if e["message"] == "downloading" && e["percent"] == float64(100) {
			told++
		}
	}
	if told < 2 {
		t.Errorf("the log tells of %d downloads: %v", told, s.log)
	}
	before := len(h.Requests())
	again := serving(t, "--addr", "127.0.0.1:0", "--offline", "--model", "bonsai-1.7b")
	if err := again.stop(); err != nil || len(h.Requests()) != before {
		t.Errorf("a model that is there is asked for: %v", err)
	}
}

func TestAServerIsAliveAndNotReadyWhileItsModelComes(t *testing.T) {
	h := withHub(t)
	h.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(h.CDN, r.Host) {
			<-r.Context().Done()
		}
		return false
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	logged, log := io.Pipe()
	cmd := Command(io.Discard, log)
	cmd.SetArgs([]string{"serve", "--addr", "127.0.0.1:0", "--model", "bonsai-1.7b"})
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.ExecuteContext(ctx)
		log.Close()
	}()
	base, downloading := "", false
	for lines := bufio.NewScanner(logged); lines.Scan(); {
		var e struct{ Message, Addr string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		switch e.Message {
		case "serving":
			base = "http://" + e.Addr
		case "downloading":
			downloading = true
		}
		if base == "" || !downloading || ctx.Err() != nil {
			continue
		}
		if status, _ := fetched(t, base+"/healthz"); status != http.StatusOK {
			t.Errorf("/healthz: %d while the model comes, want 200: an orchestrator would start it again", status)
		}
		if status, answer := fetched(t, base+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(answer, `"bonsai-1.7b"`) {
			t.Errorf("/readyz: %d %s while the model comes", status, answer)
		}
		if _, err := lutra(t, "health", "--addr", strings.TrimPrefix(base, "http://")); err == nil || !strings.Contains(err.Error(), "being loaded") {
			t.Errorf("health = %v while the model comes", err)
		}
		stop(server.ErrAtOnce)
	}
	if err := <-ended; err != nil || !downloading {
		t.Errorf("serve ended with %v, downloading: %v", err, downloading)
	}
}

func fetched(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestNothingIsDownloadedOffline(t *testing.T) {
	h := withHub(t)
	for _, args := range [][]string{
		{"serve", "--offline", "--model", "bonsai-1.7b"}, {"ask", "--offline", "--model", "hf:acme/Tiny-GGUF", "Hi"},
		{"serve", "--offline", "--model", "lutra-tiny-s", "--draft-model", "bonsai-1.7b"},
	} {
		status, got := complain(t, args...)
		if status != 1 || !strings.Contains(got, "is not on this machine") || !strings.Contains(got, "--offline") {
			t.Errorf("lutra %q: %d, %s", args, status, got)
		}
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	for _, args := range [][]string{{"pull", "bonsai-1.7b"}, {"ask", "--model", "bonsai-1.7b", "Hi"}} {
		if status, got := complain(t, args...); status != 1 || !strings.Contains(strings.ToLower(got), "offline") {
			t.Errorf("lutra %q: %d, %s", args, status, got)
		}
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

func TestAskDownloadsNothingButTheModelThatAnswers(t *testing.T) {
	h := withHub(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("models: [{path: bonsai-1.7b}, {path: bitnet-2b}]\nverifiers: [{path: rlhflow-prm-8b}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustLutra(t, "ask", "--config", path, "--max-tokens", "2", "Hi")
	for _, r := range h.Requests() {
		if !r.CDN && !strings.Contains(r.Path, "Bonsai") {
			t.Errorf("it asks for %s", r.Path)
		}
	}
}

func TestAChatCanChangeToAModelOfTheHub(t *testing.T) {
	withHub(t)
	var out bytes.Buffer
	root := Command(&out, &out)
	root.SetIn(strings.NewReader("/model bitnet-2b\n/model hf:acme/None\n/model\n"))
	root.SetArgs([]string{"chat", "--model", "lutra-tiny-s"})
	err := root.ExecuteContext(t.Context())
	if got := out.String(); err == nil || !strings.Contains(got, "(bitnet-2b: llama") || !strings.Contains(got, "no public repository acme/None") || !strings.Contains(got, "model: bitnet-2b, of") {
		t.Errorf("%s%v", got, err)
	}
}

func TestModelsAreDownloadedListedAndDeleted(t *testing.T) {
	withHub(t)
	if got := mustLutra(t, "list"); !strings.Contains(got, "There is no GGUF model in") {
		t.Errorf("an empty cache lists as %s", got)
	}
	if status, got := complain(t, "info", "bonsai-1.7b"); status != 1 || !strings.Contains(got, "lutra pull bonsai-1.7b gets it") {
		t.Errorf("info of what is not there: %d, %s", status, got)
	}
	path := strings.TrimSpace(mustLutra(t, "pull", "bonsai-1.7b"))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		t.Fatalf("pull = %q: %v", path, err)
	}
	if _, got := complain(t, "pull", "hf:acme/Tiny-GGUF:Q8_0"); !strings.Contains(got, "hf:acme/Tiny-GGUF:Tiny-Q8_0.gguf: 100% of ") && !strings.Contains(got, "hf:acme/Tiny-GGUF:Q8_0: 100% of ") {
		t.Errorf("pull tells %q", got)
	}
	var list []storedModel
	if err := json.Unmarshal([]byte(mustLutra(t, "list", "--json")), &list); err != nil || len(list) != 2 {
		t.Fatalf("list --json = %+v, %v", list, err)
	}
	if m := list[1]; m.Name != "bonsai-1.7b" || m.Path != path || m.Missing != 0 || m.File != "hf:prism-ml/Bonsai-1.7B-gguf:Bonsai-1.7B-Q1_0.gguf" {
		t.Errorf("list --json = %+v", list)
	}
	if got := mustLutra(t, "list"); !strings.Contains(got, "bonsai-1.7b ") || !strings.Contains(got, "hf:acme/Tiny-GGUF:Tiny-Q8_0.gguf ") {
		t.Errorf("list = %s", got)
	}
	if got := mustLutra(t, "info", "bonsai-1.7b"); !strings.Contains(got, "GGUF v3") {
		t.Errorf("info = %s", got)
	}
	if got := mustLutra(t, "rm", "bonsai-1.7b"); !strings.HasPrefix(got, "bonsai-1.7b deleted, ") {
		t.Errorf("rm = %s", got)
	}
	if status, got := complain(t, "rm", "bonsai-1.7b"); status != 1 || !strings.Contains(got, "is not on this machine") {
		t.Errorf("rm again: %d, %s", status, got)
	}
}

func TestTheCatalogueIsATable(t *testing.T) {
	got := mustLutra(t, "list", "--catalogue")
	for _, e := range hub.Catalogue() {
		if !strings.Contains(got, e.Name+" ") || !strings.Contains(got, e.Good) {
			t.Errorf("%s is not in\n%s", e.Name, got)
		}
	}
	var list []knownModel
	if err := json.Unmarshal([]byte(mustLutra(t, "list", "--catalogue", "--json")), &list); err != nil || len(list) != len(hub.Catalogue()) {
		t.Errorf("as JSON: %d models, %v", len(list), err)
	}
}

func TestNamesThatAreNoneOfTheHubAreMistakes(t *testing.T) {
	withHub(t)
	for _, c := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"pull", "bonsai-1.7"}, true, "did you mean bonsai-1.7b?"},
		{[]string{"pull", "hf:acme"}, true, "want hf:OWNER/REPO"},
		{[]string{"pull", "hf:../x"}, true, "no name of a repository"},
		{[]string{"rm", "model.gguf"}, true, "not in the catalogue"},
		{[]string{"serve", "--model", "hf:acme/Tiny-GGUF:../x.gguf"}, true, "refused"},
		{[]string{"serve", "--model", "bonsai-1.7"}, true, "did you mean bonsai-1.7b?"},
		{[]string{"serve", "--draft-model", "hf:acme"}, true, "--draft-model: "},
		{[]string{"pull", "hf:acme/Tiny-GGUF:Q4_K_M"}, false, "Tiny-F16.gguf, Tiny-Q8_0.gguf"},
		{[]string{"pull", "hf:acme/Tiny-GGUF:F16"}, false, "a web page"},
		{[]string{"pull", "hf:acme/Other"}, false, "no public repository"},
	} {
		var mistake usage.Error
		_, err := lutra(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &mistake) != c.usage {
			t.Errorf("lutra %q: %v, want %q, a mistake of usage: %v", c.args, err, c.want, c.usage)
		}
	}
}

func TestLinesTellOfADownloadEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &downloading{getter: &getter{errOut: &out}, name: "m", now: func() time.Time { return clock }}
	for i := int64(0); i <= 100; i++ {
		p.tell(i<<20, 100<<20)
		clock = clock.Add(100 * time.Millisecond)
	}
	p.end()
	if got, want := out.String(), "m: 0% of 100.0 MiB\nm: 50% of 100.0 MiB\nm: 100% of 100.0 MiB\n"; got != want {
		t.Errorf("it tells %q, want %q", got, want)
	}
}

func TestAHubThatIsAskedAgainIsTold(t *testing.T) {
	h := withHub(t)
	asked := 0
	h.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if asked++; asked > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	var errOut bytes.Buffer
	root := Command(&errOut, &errOut)
	root.SetArgs([]string{"pull", "bonsai-1.7b"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	root.SetErr(writerFunc(func(p []byte) (int, error) {
		defer stop() // instead of waiting
		return errOut.Write(p)
	}))
	if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("pull = %v", err)
	}
	if got := errOut.String(); !strings.Contains(got, "503 Service Unavailable; trying again in 1s") {
		t.Errorf("it says %q", got)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAnInterruptedDownloadSaysThatItGoesOn(t *testing.T) {
	h := withHub(t)
	ctx, interrupt := context.WithCancel(t.Context())
	h.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(h.CDN, r.Host) {
			interrupt()
			<-r.Context().Done()
		}
		return false
	}
	var errOut bytes.Buffer
	root := Command(&errOut, &errOut)
	root.SetArgs([]string{"pull", "bonsai-1.7b"})
	if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted pull = %v", err)
	}
	if got := errOut.String(); !strings.Contains(got, "the same command goes on") {
		t.Errorf("it says %q", got)
	}
	if got := mustLutra(t, "list"); !strings.Contains(got, "lutra pull goes on") {
		t.Errorf("list = %s", got)
	}
}
