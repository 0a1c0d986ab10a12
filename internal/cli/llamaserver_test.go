package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
)

func TestRunTalksToAModelOfAFile(t *testing.T) {
	sweep.Full(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "noise-q8_0.gguf")
	if err := os.WriteFile(file, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(in, addr, name string, prompt ...string) {
		t.Helper()
		cmd := process(t, append([]string{"run", "--addr", addr, "--max-tokens", "3", name}, prompt...)...)
		var out, errOut bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(in), &out, &errOut
		if err := cmd.Run(); err != nil || out.Len() == 0 {
			t.Errorf("run %s %q: %v, prints %q\n%s", name, prompt, err, &out, &errOut)
		}
	}
	addr := "127.0.0.1:" + freePort(t)
	for _, name := range []string{file, "noise-q8_0.gguf", "./noise-q8_0.gguf", "mine=noise-q8_0.gguf"} {
		run("", addr, name, "hi")
	}
	run("hi", addr, file)
	s := serving(t, "--addr", "127.0.0.1:0", "--model", file)
	for _, name := range []string{file, "noise-q8_0.gguf", "noise-q8_0"} {
		run("", strings.TrimPrefix(s.base, "http://"), name, "hi")
	}
}

func TestServeTakesWhatUsersOfLlamaServerType(t *testing.T) {
	file := filepath.Join(t.TempDir(), "noise.gguf")
	if err := os.WriteFile(file, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	for _, line := range []string{
		file + " --host 127.0.0.1 --port " + port + " -c 64 -t 1", "-m " + file + " --port " + port + " --ctx-size 64 --threads 1", "--model " + file + " --port " + port + " --ctx 64",
	} {
		s := serving(t, strings.Fields(line)...)
		_, card := fetched(t, s.base+"/v1/models/noise")
		if s.base != "http://127.0.0.1:"+port || !strings.Contains(card, `"max_model_len":64`) {
			t.Errorf("serve %s is at %s with %s", line, s.base, card)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	withHub(t)
	if s := serving(t, "--addr", "127.0.0.1:0", "--hf-repo", "acme/Tiny-GGUF:Q8_0"); !slices.Contains(s.models(t), "Tiny") {
		t.Errorf("serve --hf-repo has %q", s.models(t))
	}
	cmd := process(t, "serve", "-hf", "acme")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `"acme" is no name of a repository; want hf:OWNER/REPO`) {
		t.Errorf("serve -hf acme: %v, %s", err, out)
	}
}

func TestTheContextOfAllModelsIsExtendedByLlamaServersFlags(t *testing.T) {
	parse := func(args string) (config.Config, error) {
		var m ModelFlags
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		m.Register(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			return config.Config{}, err
		}
		return m.load(f)
	}
	cfg, err := parse("--model lutra-tiny-s --rope-scaling yarn --rope-scale 2.5 --yarn-orig-ctx 64")
	if err != nil {
		t.Fatal(err)
	}
	want := gguf.Metadata{"rope.scaling.type": "yarn", "rope.scaling.factor": 2.5, "rope.scaling.original_context_length": int64(64)}
	if got := cfg.Models[0].Overrides(); !reflect.DeepEqual(got, want) {
		t.Errorf("the metadata is %v, want %v", got, want)
	}
	for args, want := range map[string]string{
		"--rope-scale 2":                          "need --rope-scaling yarn or linear",
		"--yarn-orig-ctx 64":                      "need --rope-scaling yarn or linear",
		"--rope-scaling yarn":                     "needs --rope-scale with a number from 1 on, not 0",
		"--rope-scaling linear --rope-scale 0.25": "not 0.25",
		"--rope-scaling longrope":                 "longrope",
		"--rope-scaling none --yarn-orig-ctx -1":  "--yarn-orig-ctx: -1 is negative",
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", args, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "noise.gguf")
	if err := os.WriteFile(file, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serving(t, "--addr", "127.0.0.1:0", "--model", file, "--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "32")
	if _, card := fetched(t, s.base+"/v1/models/noise"); !strings.Contains(card, `"max_model_len":128`) {
		t.Errorf("four times 32 tokens give %s", card)
	}
}

func TestAPortGoesBeforeThatOfTheConfiguration(t *testing.T) {
	port := freePort(t)
	s := serving(t, "--config", configFile(t, "server: {addr: '127.0.0.1:1'}\n"), "--port", port)
	if want := "http://" + net.JoinHostPort("127.0.0.1", port); s.base != want {
		t.Errorf("the server is at %s, want %s", s.base, want)
	}
}

func TestAModelThatAServerLacksIsAnsweredWithThoseItHas(t *testing.T) {
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	for name, want := range map[string]string{"lutra-tini-s": "does not exist; did you mean lutra-tiny-s?", "lutra": "did you mean lutra-tiny-s?", "gpt": "; there are lutra-tiny-s, "} {
		if status, got := complain(t, "ask", "--url", s.base, "--model", name, "hi"); status != 1 || !strings.Contains(got, want) {
			t.Errorf("ask --model %s: status %d, %s, want %s", name, status, got, want)
		}
		if status, got := complain(t, "run", "--addr", strings.TrimPrefix(s.base, "http://"), name, "hi"); status != 1 || !strings.Contains(got, strings.TrimPrefix(want, "does not exist")) {
			t.Errorf("run %s: status %d, %s, want %s", name, status, got, want)
		}
	}
}

func TestLlamaServersFormatsOfKeysAndValuesAreOurs(t *testing.T) {
	for args, want := range map[string]string{
		"-ctk q8_0 -ctv q4_0":                     "int8/int4",
		"--cache-type-k q4_0 --cache-type-v q4_0": "int4",
		"-ctk q8_0": "int8/f16",
		"-ctv f16":  "f16",
	} {
		var m ModelFlags
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		m.Register(f)
		llamaServerFlags(f)
		if err := f.Parse(asServed(append([]string{"serve"}, strings.Fields(args)...))[1:]); err != nil {
			t.Fatal(err)
		}
		if err := m.cacheAs(f); err != nil {
			t.Fatal(err)
		}
		if got := f.Lookup("kv-type").Value.String(); got != want {
			t.Errorf("%s: --kv-type %s, want %s", args, got, want)
		}
	}
}
