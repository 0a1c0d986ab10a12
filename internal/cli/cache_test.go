package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cacheCommand runs lutra cache with arguments.
func cacheCommand(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := Command(&out, io.Discard)
	cmd.SetArgs(append([]string{"cache"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

// A server reads what one before it has computed of a model and of its adapters, each its own, and says the same.
func TestAServerReadsThePromptsOfOneBefore(t *testing.T) {
	folder, config := filepath.Join(t.TempDir(), "prefixes"), filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("models: [{name: base, path: ../../models/testdata/huggingface/llama, adapters: [{name: one, path: ../../models/testdata/lora/llama-all.gguf, scale: 0.5}]}]\nverifiers: []\nkv: {block: 8, disk: {path: %q, size: 1GiB, keep: 24h}}\nlog: {format: json}\n", folder)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	prompt := "[5"
	for i := range 60 {
		prompt += fmt.Sprint(",", 5+i%20)
	}
	type answer struct {
		Choices []struct {
			Text     string
			Logprobs any
		}
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	models := []string{`"model":"base"`, `"model":"one"`, `"model":"base","lora":[{"id":0,"scale":1}]`}
	life := func(cached int) (said []string, metrics string) {
		s := serving(t, "--config", config, "--addr", "127.0.0.1:0")
		for _, m := range models {
			var a answer
			posted(t, s.base+"/v1/completions", `{`+m+`,"prompt":`+prompt+`],"max_tokens":6,"logprobs":2,"temperature":0}`, &a)
			if a.Usage.Details.Cached != cached {
				t.Errorf("%s: %d tokens were cached, want %d", m, a.Usage.Details.Cached, cached)
			}
			said = append(said, fmt.Sprint(a.Choices))
		}
		resp, err := http.Get(strings.TrimSuffix(s.base, "/v1") + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		return said, string(data)
	}
	want, _ := life(0)
	got, metrics := life(56) // whole blocks before the last token
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: %s after a restart, want %s", models[i], got[i], want[i])
		}
	}
	if want[0] == want[1] || want[1] == want[2] {
		t.Error("adapters change nothing")
	}
	if !strings.Contains(metrics, `lutra_kv_disk_hits_total{model_name="base"} 168`) {
		t.Errorf("metrics lack 168 hits: %s", regexp.MustCompile(`(?m)^lutra_kv_disk.*`).FindAllString(metrics, -1))
	}
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^lutra_kv_disk_\w+`).FindAllString(metrics, -1)
	if len(names) != 10 {
		t.Errorf("metrics %v, want 10", names)
	}
	for _, name := range names {
		if !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
	}
}

func TestPromptsAreWarmedListedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	long := strings.Repeat("A box holds 12 eggs. Ann buys 7 boxes. ", 6)
	for file, first := range map[string]string{
		write("prompt.txt", long): " tokens, 0 of them kept before",
		write("messages.json", fmt.Sprintf(`[{"role": "user", "content": %q}]`, long)):                                                        "",
		write("request.json", fmt.Sprintf(`{"stream": true, "n": 3, "max_tokens": 99, "messages": [{"role": "user", "content": %q}]}`, long)): "",
	} {
		out, err := cacheCommand("warm", file, "--kv-disk", "prefixes", "--model", "lutra-tiny-s", "--verifier", "lutra-tiny-prm")
		if err != nil || !strings.Contains(out, first) {
			t.Fatalf("warm %s: %q, %v", file, out, err)
		}
		out, err = cacheCommand("warm", file, "--kv-disk", "prefixes", "--model", "lutra-tiny-s")
		m := regexp.MustCompile(`^(\d+) tokens, (\d+) of them`).FindStringSubmatch(out)
		if err != nil || m == nil || m[2] == "0" {
			t.Errorf("warm %s again: %q, %v", file, out, err)
		}
	}
	out, err := cacheCommand("ls", "--kv-disk", "prefixes")
	if err != nil || strings.Count(out, "lutra-tiny-s") != 1 {
		t.Errorf("ls: %q, %v", out, err)
	}
	var list []cachedModel
	if out, err = cacheCommand("ls", "--kv-disk", "prefixes", "--json"); err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 1 || list[0].Files == 0 || len(list[0].SHA256) != 64 || list[0].KV != "f16" {
		t.Errorf("ls --json: %q, %v", out, err)
	}
	for _, c := range []struct{ args, want string }{
		{"rm --unused 1h", "removed 0 files"}, {"rm other", "removed 0 files"}, {"rm lutra-tiny-s", fmt.Sprintf("removed %d files", list[0].Files)}, {"ls", "nothing is kept"},
	} {
		if out, err := cacheCommand(append(strings.Fields(c.args), "--kv-disk", "prefixes")...); err != nil || !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.args, out, err, c.want)
		}
	}
	for args, want := range map[string]string{
		"ls":                                   "--kv-disk",
		"rm --kv-disk x --unused -1s":          "negative",
		"warm prompt.txt --model lutra-tiny-s": "--kv-disk",
		"warm " + write("empty", " ") + " --kv-disk x": "empty",
		"warm none --kv-disk x":                        "no such file",
		"warm " + write("bad.json", `{"messages": 7}`) + " --kv-disk x --model lutra-tiny-s": "messages",
	} {
		if out, err := cacheCommand(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", args, out, err, want)
		}
	}
}
