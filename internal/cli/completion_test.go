package cli

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// completes returns the shell's offers for a command line's last word.
func completes(t *testing.T, args ...string) (words []string, files bool) {
	t.Helper()
	var out bytes.Buffer
	root := Command(&out, &bytes.Buffer{})
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	return lines[:len(lines)-1], lines[len(lines)-1] == ":0"
}

func TestAShellIsOfferedTheValuesOfFlagsAndArguments(t *testing.T) {
	models := hubtest.New(t)
	entry := hub.Catalogue()[0]
	models.Put(entry.Ref.ID(), entry.Ref.File, tinyModel(t))
	models.Put("me/stories-GGUF", "stories-Q4_K_M.gguf", tinyModel(t))
	t.Setenv("HF_ENDPOINT", models.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_HUB_OFFLINE", "")
	mustLutra(t, "pull", entry.Name)
	mustLutra(t, "pull", "hf:me/stories-GGUF")
	const mine = "hf:me/stories-GGUF:stories-Q4_K_M.gguf"
	server := api(t, "lutra", "theirs")
	t.Setenv("LUTRA_SERVER_ADDR", strings.TrimPrefix(server.URL, "http://"))
	for _, c := range []struct {
		line  string
		want  []string // among others
		files bool
	}{
		{"ask --url " + server.URL + " --model ", []string{"theirs"}, false},
		{"run ", []string{"theirs", "lutra-tiny-l"}, true},
		{"stop ", []string{"theirs", "all"}, false},
		{"ask --schema ", nil, true},
		{"chat --tools ", nil, true},
		{"ask --model ", []string{"lutra-tiny-l", entry.Name, mine}, true},
		{"serve --draft-model ", []string{"lutra-tiny-s"}, true},
		{"serve --verifier ", []string{"lutra-tiny-prm", "rlhflow-prm-8b"}, true},
		{"ask --scaling ", []string{"bon8", "beam16x4", "best_of_n", "none"}, false},
		{"ask --scaling be", []string{"beam16x4", "beam_search", "best_of_n"}, false},
		{"ask --log ", config.LogLevels(), false},
		{"serve --kv-type ", config.KVTypes(), false},
		{"serve --backend ", config.Backends(), false},
		{"serve --placement ", []string{"cpu", "all"}, false},
		{"chat --thinking ", []string{"on", "off"}, false},
		{"serve --packing ", []string{"i1", "stored"}, false},
		{"serve --speculation ", []string{"auto", "off"}, false},
		{"pull ", hub.Names(), false},
		{"rm ", []string{entry.Name, mine}, false},
		{"info ", []string{"lutra-tiny-l", mine}, true},
		{"help ", []string{"ask", "serve"}, false},
		{"ask ", nil, false},
		{"ask --system ", nil, false},
		{"serve --config ", nil, true},
	} {
		args := strings.Split(c.line, " ")
		got, files := completes(t, args...)
		if files != c.files {
			t.Errorf("%q: files are offered: %t", c.line, files)
		}
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q are offered, and not %q", c.line, got, w)
			}
		}
		for _, w := range got {
			if !strings.HasPrefix(w, args[len(args)-1]) {
				t.Errorf("%q: %q is offered", c.line, w)
			}
		}
	}
}

func TestValuesThatAreOfferedAreTaken(t *testing.T) {
	for _, name := range []string{"ask", "serve"} {
		cmd, _, err := Command(&bytes.Buffer{}, &bytes.Buffer{}).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "model" || f.Name == "verifier" || f.Name == "draft-model" || f.Value.Type() == "bool" {
				return
			}
			offer, ok := cmd.GetFlagCompletionFunc(f.Name)
			if !ok {
				return
			}
			words, _ := offer(cmd, nil, "")
			for _, w := range words {
				if err := f.Value.Set(w); err != nil {
					t.Errorf("lutra %s --%s %s: %v", name, f.Name, w, err)
				}
			}
		})
	}
}

func TestCommandsOfOtherProgramsAreAnsweredWithWhatThereIs(t *testing.T) {
	root := Command(&bytes.Buffer{}, &bytes.Buffer{})
	for word, want := range map[string]string{"show": "lutra info", "models": "lutra list", "download": "lutra pull", "delete": "lutra rm", "server": "lutra serve"} {
		if status, got := complain(t, word); status != 2 || !strings.Contains(got, want) {
			t.Errorf("lutra %s: status %d, %s; want %s in it", word, status, got, want)
		}
	}
	for word, say := range elsewhere {
		if slices.Contains(commandNames(root), word) {
			t.Errorf("%s is a command here", word)
		}
		for _, part := range strings.Split(say, "lutra ")[1:] {
			if name := strings.Fields(part)[0]; !slices.Contains(commandNames(root), name) {
				t.Errorf("%s: there is no command %s", word, name)
			}
		}
	}
}

func TestAVersionNamesItsRevision(t *testing.T) {
	of := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "122d270abcdef0123456789"
	for _, c := range []struct {
		release string
		info    *debug.BuildInfo
		short   string
		long    string
	}{
		{"", of("v1.2.0"), "v1.2.0", "v1.2.0, go"},
		{"", of("(devel)", "vcs.revision", revision, "vcs.time", "2026-11-20T23:59:00Z", "vcs.modified", "false"), "122d270abcde", "122d270abcde (revision 122d270abcde of 2026-11-20), go"},
		{"", of("v0.0.0-2026-122d270abcde+dirty", "vcs.revision", revision, "vcs.modified", "true"), "v0.0.0-2026-122d270abcde+dirty", "v0.0.0-2026-122d270abcde+dirty (revision 122d270abcde, changed since), go"},
		{"v2.0.0", of("(devel)", "vcs.revision", revision), "v2.0.0", "v2.0.0 (revision 122d270abcde), go"},
		{"", of("(devel)"), "unreleased", "unreleased, go"},
		{"", nil, "unreleased", "unreleased, go"},
	} {
		release = c.release
		short, long := describeBuild(c.info, c.info != nil)
		if short != c.short || !strings.HasPrefix(long, c.long) {
			t.Errorf("%+v: %q and %q, want %q and %q", c.info, short, long, c.short, c.long)
		}
	}
	release = ""
	if a, b := mustLutra(t, "version"), mustLutra(t, "--version"); !strings.HasPrefix(a, b) || !strings.HasPrefix(a, "lutra ") || strings.Contains(a, "(devel)") {
		t.Errorf("lutra version prints %q, --version %q", a, b)
	}
	info := of("", "-trimpath", "true", "CGO_ENABLED", "0", "vcs", "git", "vcs.revision", revision, "vcs.time", "2026-11-20T23:59:00Z", "vcs.modified", "true")
	info.GoVersion = "go1.26.8"
	want := "commit    " + revision + " of 2026-11-20T23:59:00Z, changed since\ngo        go1.26.8\nsettings  -trimpath=true CGO_ENABLED=0\n"
	if got := howBuilt(info, true); got != want {
		t.Errorf("howBuilt = %q, want %q", got, want)
	}
}

func TestNoMessageNamesAPackage(t *testing.T) {
	t.Chdir(t.TempDir())
	path := configFile(t, "server:\n  presets:\n    mine: beam_search;n=6;width=4\n")
	long := strings.Repeat("eggs ", 3000)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ask", long}, "lutra ask: the prompt has at least"},
		{[]string{"serve", "--config", path}, ":3: server.presets.mine: test_time_scaling.n: 6 is not"},
		{[]string{"serve", "--config", configFile(t, "server: [1]\nkv: 3\n")}, ":1: server: found a list, want keys with values\nlutra serve: "},
		{[]string{"ask", "--scaling", "sc4;answer.extract=regex:(", "hi"}, "--scaling: answer"},
		{[]string{"ask", "--scaling", "bon4;verifier=none", "hi"}, "lutra ask: test_time_scaling.verifier: there is no verifier"},
		{[]string{"ask", "--model", "hf:me", "hi"}, "lutra ask: --model: "},
	} {
		status, got := complain(t, c.args...)
		if status == 0 || !strings.Contains(got, c.want) {
			t.Errorf("lutra %.60q: status %d, %s, want %s", c.args, status, got, c.want)
		}
		for _, name := range []string{"tts: ", "gguf: ", "models: ", "hub: "} {
			if strings.Contains(strings.ReplaceAll(got, "lutra "+name, ""), name) {
				t.Errorf("lutra %.60q names a package: %s", c.args, got)
			}
		}
	}
}

func TestARepositoryOfTheHubIsRecognisedHoweverItIsWritten(t *testing.T) {
	for arg, want := range map[string]string{
		"me/stories-GGUF":                                                             "did you mean hf:me/stories-GGUF?",
		"https://huggingface.co/me/stories-GGUF":                                      "did you mean hf:me/stories-GGUF?",
		"https://huggingface.co/me/stories-GGUF/":                                     "did you mean hf:me/stories-GGUF?",
		"https://huggingface.co/me/stories-GGUF/tree/main":                            "did you mean hf:me/stories-GGUF?",
		"https://huggingface.co/me/stories-GGUF/blob/main/stories-Q4_K_M.gguf":        "did you mean hf:me/stories-GGUF:stories-Q4_K_M.gguf?",
		"https://huggingface.co/me/stories-GGUF/resolve/main/s-Q8.gguf?download=true": "did you mean hf:me/stories-GGUF:s-Q8.gguf?",
		"https://example.org/me/stories":                                              "is not in the catalogue (",
		"bonsai-1.7":                                                                  "did you mean bonsai-1.7b?",
	} {
		if status, got := complain(t, "pull", arg); status != 2 || !strings.Contains(got, want) {
			t.Errorf("lutra pull %s: status %d, %s; want %s", arg, status, got, want)
		}
	}
}
