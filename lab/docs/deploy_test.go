package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub"
)

// TestTheHubsPagesShowCommandsThatLutraTakes reads the entry for Hugging Face's pages, with what the page
// puts into a command: a model's name, and a word for its file, or none where it has one file.
func TestTheHubsPagesShowCommandsThatLutraTakes(t *testing.T) {
	text := shipped(t, "deploy/huggingface/local-app.ts")
	name := regexp.MustCompile("const name = `(.*)`;").FindStringSubmatch(text)
	if name == nil {
		t.Fatal("it makes no name")
	}
	commands := regexp.MustCompile("`(lutra [^`]*)`").FindAllStringSubmatch(text, -1)
	if len(commands) != 3 {
		t.Errorf("%d commands, want 3", len(commands))
	}
	for _, quant := range []string{":Q4_K_M", ":UD-IQ2_XXS", ""} {
		filled := strings.NewReplacer("${model.id}", "bartowski/SmolLM2-135M-Instruct-GGUF", "${getQuantTag(filepath)}", quant).Replace(name[1])
		if ref, err := hub.Parse(filled); err != nil || ref.Repo != "SmolLM2-135M-Instruct-GGUF" || ":"+ref.Quant != quant && quant != "" {
			t.Errorf("hub.Parse(%q) = %+v, %v", filled, ref, err)
		}
		for _, c := range commands {
			args := strings.Fields(strings.ReplaceAll(c[1], "${name}", filled))
			if strings.Contains(strings.Join(args, " "), "$") || !slices.Contains(args, filled) {
				t.Errorf("%q names no model", args)
			}
			if err := parses(args[0], args[1:]); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}

// TestEveryImageIsBuiltWhereItIsNamed holds what names an image of Lutra, which no registry has, to the
// commands that make it: in a document, above or beside it; for the chart and compose, by their defaults.
func TestEveryImageIsBuiltWhereItIsNamed(t *testing.T) {
	image := regexp.MustCompile(`(?:docker|podman) run[^\n]*? ((?:[a-z0-9.:-]+/)*lutra(?::\S+)?)(?: |\n|$)|image\.repository=(\S*lutra)\b|` +
		`\b((?:ghcr\.io|docker\.io|quay\.io|registry\.[a-z.]+)/[a-z0-9/-]*lutra)\b`)
	found := 0
	for name, text := range documents(t) {
		text = strings.ReplaceAll(text, "\\\n", " ")
		for _, m := range image.FindAllStringSubmatchIndex(text, -1) {
			for i := 2; i < len(m); i += 2 {
				if m[i] < 0 {
					continue
				}
				found++
				repository, _, _ := strings.Cut(text[m[i]:m[i+1]], ":v")
				made := regexp.MustCompile(`(?m)^docker build -t ` + regexp.QuoteMeta(repository) + `(:\S+)? \.$|docker://` + regexp.QuoteMeta(repository) + `:`)
				if !made.MatchString(text) {
					t.Errorf("%s names the image %s, and not how it is made", name, repository)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d names of images: the test has lost sight of them", found)
	}
	values := shipped(t, "deploy/helm/lutra/values.yaml")
	if !strings.Contains(values, "\n  repository: lutra\n") {
		t.Error("the chart has another image by default: say who publishes it")
	}
	// Whoever installs with the default is told.
	notes := shipped(t, "deploy/helm/lutra/templates/NOTES.txt")
	for _, want := range []string{`eq .Values.image.repository "lutra"`, "docker build -t", "docker push", "--set image.repository="} {
		if !strings.Contains(notes, want) {
			t.Errorf("the chart's notes do not say %q", want)
		}
	}
	for _, want := range []string{"image: ${LUTRA_IMAGE:-lutra}\n    build: .."} {
		if !strings.Contains(shipped(t, "deploy/compose.yaml"), want) {
			t.Errorf("compose.yaml has no %q", want)
		}
	}
}

// TestTheWindowsServiceStartsACommandThatIsThere reads the lines for sc.exe.
func TestTheWindowsServiceStartsACommandThatIsThere(t *testing.T) {
	text := documents(t)["docs/serving.md"]
	m := regexp.MustCompile(`sc\.exe create lutra binPath= "\\"(.*?)\\" (.*?)" `).FindStringSubmatch(text)
	if m == nil || !strings.HasSuffix(m[1], `\lutra.exe`) {
		t.Fatalf("serving.md does not create the service: %q", m)
	}
	args := strings.Fields(m[2])
	if err := parses("lutra", args); err != nil || args[0] != "serve" {
		t.Errorf("lutra %q: %v", args, err)
	}
	for _, want := range []string{"sc.exe start lutra", "sc.exe stop lutra", "sc.exe delete lutra"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("serving.md has no %q", want)
		}
	}
}

// shipped returns a file of the repository.
func shipped(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
