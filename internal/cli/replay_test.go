package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/server/receipt"
)

// keep asks a server, and keeps its answer in a file.
func keep(t *testing.T, base, body string) string {
	t.Helper()
	resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", resp.StatusCode, answer, err)
	}
	return written(t, answer)
}

func written(t *testing.T, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// replayed returns replay's output, its error and its exit status.
func replayed(t *testing.T, args ...string) (out string, status int, err error) {
	t.Helper()
	out, err = lutra(t, append([]string{"replay"}, args...)...)
	if err != nil {
		status = Report(io.Discard, "lutra replay", err)
	}
	return out, status, err
}

const (
	plainRequest  = `{"model":"lutra-tiny-s","messages":[{"role":"user","content":"A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}],"n":2,"receipt":true}`
	searchRequest = `{"model":"lutra-tiny-s","messages":[{"role":"user","content":"A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}],"receipt":true,"stream":true,"test_time_scaling":{"method":"beam_search","n":4,"width":2}}`
)

func TestAnAnswerIsReplayedByAModelHereAndByAServer(t *testing.T) {
	base := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0", "--threads", "1").base
	hashes := strings.Replace(plainRequest, "true", `"hash"`, 1)
	body := written(t, []byte(hashes))
	for name, args := range map[string][]string{
		"choices": {keep(t, base, plainRequest)}, "a streamed search": {keep(t, base, searchRequest)}, "hashes": {keep(t, base, hashes), "--request", body},
	} {
		for _, where := range [][]string{{"--threads", "2"}, {"--url", base}} {
			out, status, err := replayed(t, append(args, where...)...)
			if status != 0 || !regexp.MustCompile(`^same: [12] choices?, (4 candidates, )?\d+ tokens of lutra-tiny-s \(sha256 [0-9a-f]{12}\) on `+cpu.Family()+"\n$").MatchString(out) {
				t.Errorf("%s, %v: status %d, %v\n%s", name, where, status, err, out)
			}
		}
		out, status, err := replayed(t, append(args, "--json")...)
		var found struct {
			Same    bool
			Choices int
		}
		if status != 0 || json.Unmarshal([]byte(out), &found) != nil || !found.Same || found.Choices == 0 {
			t.Errorf("%s, --json: status %d, %v\n%s", name, status, err, out)
		}
	}
	if _, status, err := replayed(t, keep(t, base, hashes)); status != 2 || !strings.Contains(err.Error(), "--request FILE") {
		t.Errorf("without its request: status %d, %v", status, err)
	}
	if _, status, err := replayed(t, keep(t, base, hashes), "--request", written(t, []byte(plainRequest))); status != 2 || !strings.Contains(err.Error(), "another request") {
		t.Errorf("with another request: status %d, %v", status, err)
	}
}

func TestReplaySaysWhereAnAnswerDiffers(t *testing.T) {
	base := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0").base
	saved, err := receipt.Read(must(os.ReadFile(keep(t, base, plainRequest))))
	if err != nil {
		t.Fatal(err)
	}
	forged := saved.Receipt
	ids := append([]int32{}, forged.Choices[1].IDs...)
	was := ids[3]
	ids[3] = was%900 + 1
	forged.Choices[1] = receipt.NewChoice(1, ids, forged.Choices[1].Finish)
	file := written(t, must(json.Marshal(forged)))
	out, status, err := replayed(t, file, "--url", base)
	want := regexp.MustCompile(`^differs: choice 1, token 3: ".*" \(\d+\) there, ".*" \(\d+\) here, behind ".+"\ncompared: 2 choices, \d+ tokens of lutra-tiny-s\n$`)
	if status != 1 || !want.MatchString(out) {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
	out, status, _ = replayed(t, file, "--json")
	var found struct {
		Same    bool
		Differs []receipt.Place
	}
	if err := json.Unmarshal([]byte(out), &found); status != 1 || err != nil || found.Same || len(found.Differs) != 1 || found.Differs[0].Index != 1 || found.Differs[0].Token != 3 || found.Differs[0].Now != was {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
}

func TestReplayRefusesByNameWhatCannotBeCompared(t *testing.T) {
	sweep.Full(t)
	s := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0", "--kv-type", "int8/int4")
	base := s.base
	file := keep(t, base, plainRequest)
	if out, status, err := replayed(t, file); status != 0 { // with keys and values as they were
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
	for want, args := range map[string][]string{
		"model.sha256: ":              {"--model", "lutra-tiny-l"},
		"model.kv: int8/int4 there":   {"--kv-type", "f16"},
		"no server answers at":        {"--url", "http://127.0.0.1:1"},
		"there is no model \"other\"": {"--url", base, "--model", "other"},
	} {
		out, status, err := replayed(t, append([]string{file}, args...)...)
		if status != 2 || err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "The model 'other' does not exist", `there is no model "other"`), want) || out != "" {
			t.Errorf("%v: status %d, %v, want %q\n%s", args, status, err, want, out)
		}
	}
	foreign := strings.ReplaceAll(string(must(os.ReadFile(file))), "lutra-tiny-s", "hf:owner/model")
	foreign = strings.Replace(foreign, `{\"model\":\"hf:owner/model\"`, `{\"model\":\"lutra-tiny-s\"`, 1)
	if _, status, err := replayed(t, written(t, []byte(foreign))); status != 2 || !strings.Contains(err.Error(), "--model") {
		t.Errorf("a model of the hub that the receipt names: status %d, %v", status, err)
	}
	if len(cpu.Supported()) > 1 {
		_ = s.stop() // no kernel may run while the instruction set changes
		defer cpu.Override(cpu.Generic)()
		if _, status, err := replayed(t, file); status != 2 || !strings.Contains(err.Error(), "kernels: ") || !strings.Contains(err.Error(), "-portable here") {
			t.Errorf("with portable kernels: status %d, %v", status, err)
		}
	}
}

// Adapters are found by their files, whatever their names and their order among others.
func TestAnAnswerOfAdaptersIsReplayedWithTheirFiles(t *testing.T) {
	const base, loras = "base=../../models/testdata/huggingface/llama", "../../models/testdata/lora/"
	one, two := loras+"llama-all.gguf", loras+"llama-some"
	s := serving(t, "--model", base, "--lora", "one="+one, "--lora", "two="+two+":0.5", "--addr", "127.0.0.1:0")
	ask := func(fields string) string {
		return keep(t, s.base, `{`+fields+`,"messages":[{"role":"user","content":"a"}],"max_tokens":8,"temperature":0,"receipt":true}`)
	}
	named, mixed, plain := ask(`"model":"base:two"`), ask(`"model":"base","lora":[{"id":0,"scale":2},{"id":1,"scale":0.25}]`), ask(`"model":"base"`)
	for name, args := range map[string][]string{
		"one by its name": {named, "--model", base, "--lora", "x=" + two}, "among others": {named, "--model", base, "--lora", one, "--lora", two + ":3"},
		"a mixture": {mixed, "--model", base, "--lora", one, "--lora", two}, "none": {plain, "--model", base}, "none of some": {plain, "--model", base, "--lora", one},
		"the server": {mixed, "--url", s.base},
	} {
		if out, status, err := replayed(t, args...); status != 0 || !strings.HasPrefix(out, "same: 1 choice, ") {
			t.Errorf("%s: status %d, %v\n%s", name, status, err, out)
		}
	}
	for want, args := range map[string][]string{
		`the answer has adapter "two" (SHA-256 `:  {named, "--model", base},
		`model.adapters: the answer has "two" of`: {mixed, "--model", base, "--lora", "two=" + one},
		`model.adapters: `:                        {mixed, "--model", base, "--lora", two, "--lora", one}, // sums of another order
		`"base", which is not embedded`:           {named, "--lora", two},
	} {
		if out, status, err := replayed(t, args...); status != 2 || err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("status %d, %v, want %q\n%s", status, err, want, out)
		}
	}
}

// TestInstructionSetsOfAFamilyReplayEachOther samples and searches with each instruction
// set, and replays with all others of its family.
func TestInstructionSetsOfAFamilyReplayEachOther(t *testing.T) {
	sweep.Full(t)
	files := map[cpu.ISA][]string{}
	for _, isa := range cpu.Supported() {
		func() {
			defer cpu.Override(isa)()
			s := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0")
			defer s.stop()
			files[isa] = []string{keep(t, s.base, plainRequest), keep(t, s.base, searchRequest)}
		}()
	}
	all := cpu.Supported()
	for _, with := range all {
		for _, from := range all {
			kept := files[from]
			if with == from {
				continue
			}
			func() {
				restore := cpu.Override(from)
				family := cpu.Family()
				restore()
				defer cpu.Override(with)()
				for _, file := range kept {
					want := 0
					if cpu.Family() != family {
						want = 2
					}
					if out, status, err := replayed(t, file); status != want {
						t.Errorf("an answer of %v with %v: status %d, want %d; %v\n%s", from, with, status, want, err, out)
					}
				}
			}()
		}
	}
}

func TestReplayAsksNobodyButTheServerThatIsNamed(t *testing.T) {
	base := serving(t, "--model", "lutra-tiny-s", "--addr", "127.0.0.1:0").base
	file := keep(t, base, plainRequest)
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	if _, status, err := replayed(t, file, "--url", moved.URL); status != 2 || !strings.Contains(err.Error(), "307") || asked {
		t.Errorf("a server that redirects: status %d, %v, asked %v", status, err, asked)
	}
	for text, want := range map[string]string{`{}`: "it has no receipt", `nothing`: "not valid JSON", `{"object":"chat.completion","receipt":{"version":1,"model":{"sha256":7}}}`: "receipt.model.sha256"} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
		if _, status, err := replayed(t, file, "--url", hostile.URL); status != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("a server that says %s: status %d, %v", text, status, err)
		}
		hostile.Close()
	}
	var ended exitStatus
	if _, status, err := replayed(t, filepath.Join(t.TempDir(), "none.json")); status != 2 || !errors.As(err, &ended) {
		t.Errorf("a file that is not there: status %d, %v", status, err)
	}
}
