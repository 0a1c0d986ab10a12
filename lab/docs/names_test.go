package docs_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/commands"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// foreignFlags lists flags of other programs that the documents name.
var foreignFlags = []string{"--draft-max", "--spec-type", "--spec-draft-n-max", "--spec-draft-n-min", "--spec-draft-p-min", "--spec-draft-model", "--speculative-config", "--no-warmup", "--no-install-recommends", "--local-dir", "--output-format", "--temp", "--include", "--tasks", "--system-site-packages", "--user", "--stop-timeout", "--target", "--now", "--purge", "--allow-untrusted", "--prefix", "--ctx-size", "--ssl-cert-file", "--ssl-key-file", "--api-key-file"}

// foreignFiles lists files of other programs, or of the reader.
var foreignFiles = []string{"NAME-00001-of-00003.gguf", "small.gguf", "m.gguf", "model.gguf", "journal.jsonl", "results.json", "results.md", "convert_lora_to_gguf.py"}

var (
	fences     = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpans  = regexp.MustCompile("`([^`\n]+)`")
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unslugged  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	links      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	flags      = regexp.MustCompile(`(?:^|[\s(])(--[a-z][a-z0-9-]*)`)
	settingKey = regexp.MustCompile(`^(server|engine|kv|search|loading|log|models|verifiers)(\[\])?\.[a-z_]+$`)
	metric     = regexp.MustCompile(`^(lutra_|vllm:)[a-z0-9_]+`)
	endpoint   = regexp.MustCompile(`^(GET |POST )?(/[a-z][a-zA-Z0-9/{}_-]*)$`)
	fileName   = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*\.(go|md|py|yaml|yml|sh|h|s|mjs|js|json|jsonl|csv|gguf)$`)
	folder     = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+/?$`)
	testName   = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w+$`)
	variable   = regexp.MustCompile(`^(LUTRA_[A-Z_]+|[A-Z]+_SECONDS)\b`)
	codeWord   = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
)

// repositoryFiles are the paths of all files, and the text of those in Go and of
// scripts, by their folder. They are read once, for all tests.
func repositoryFiles(t *testing.T) (paths []string, sources map[string]string) {
	t.Helper()
	all, err := readRepository()
	if err != nil {
		t.Fatal(err)
	}
	return all.paths, all.sources
}

type repositoryTexts struct {
	paths   []string
	sources map[string]string
}

var readRepository = sync.OnceValues(func() (all repositoryTexts, err error) {
	texts := map[string][]string{}
	err = filepath.WalkDir(repository, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, p)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if slices.Contains([]string{".git", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			all.paths = append(all.paths, name+"/")
			return nil
		}
		all.paths = append(all.paths, name)
		if ext := path.Ext(name); ext == ".go" || strings.HasPrefix(name, ".ci/") || ext == ".mjs" || ext == ".js" || ext == ".py" {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			texts[path.Dir(name)] = append(texts[path.Dir(name)], string(text))
		}
		return nil
	})
	all.sources = map[string]string{}
	for folder, files := range texts {
		all.sources[folder] = strings.Join(files, "")
	}
	return all, err
})

// naming holds the names that exist.
type naming struct {
	paths   []string
	sources map[string]string
	all     string                     // of sources
	declare map[string]map[string]bool // by folder, what its source declares
	keys    []string
	flags   []string
	base    string // of a live server
}

func newNaming(t *testing.T) *naming {
	n := &naming{base: serving(t, "--model", "lutra-tiny-s", "--config", configFile(t, "server: {debug: true}\n")), flags: foreignFlags}
	n.paths, n.sources = repositoryFiles(t)
	n.all = strings.Join(slices.Collect(maps.Values(n.sources)), "")
	n.declare = map[string]map[string]bool{}
	for folder, source := range n.sources {
		n.declare[folder] = declared(source)
	}
	n.keys = slices.Concat(settingKeys(reflect.TypeFor[config.Config](), ""),
		settingKeys(reflect.TypeFor[config.Model](), "models[]."), settingKeys(reflect.TypeFor[config.Verifier](), "verifiers[]."))
	for _, c := range allCommands() {
		c.InitDefaultHelpFlag()
		c.InitDefaultVersionFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { n.flags = append(n.flags, "--"+f.Name) })
	}
	return n
}

// settingKeys are the keys of the settings in a section.
func settingKeys(section reflect.Type, prefix string) (keys []string) {
	for i := range section.NumField() {
		f := section.Field(i)
		name := f.Tag.Get("yaml")
		switch {
		case f.Anonymous:
			keys = append(keys, settingKeys(f.Type, prefix)...)
		case !f.IsExported() || name == "" || name == "-":
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, settingKeys(f.Type, prefix+name+".")...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

// check says what is wrong with a code span of a document; nil: nothing.
func (n *naming) check(doc, span string) error {
	key, _, _ := strings.Cut(span, ": ")
	first, _, spaced := strings.Cut(span, " ")
	switch {
	case (first == "lutra" || first == "lutra-lab") && spaced:
		return parses(first, strings.Fields(span)[1:])
	case spaced && slices.Contains([]string{"ask", "serve"}, first):
		return parses("lutra", strings.Fields(span))
	case spaced && slices.Contains([]string{"bench", "eval", "logits", "perplexity", "quantize", "imatrix"}, first):
		return parses("lutra-lab", strings.Fields(span))
	case settingKey.MatchString(key):
		if !slices.Contains(n.keys, key) {
			return fmt.Errorf("there is no setting %s%s", key, usage.DidYouMean(key, n.keys))
		}
	case metric.MatchString(span) && n.exists(span+".yaml"): // a task of tools/lmeval
	case metric.MatchString(span):
		if name := metric.FindString(span); !strings.Contains(n.all, `"`+name) && !strings.Contains(n.all, `"`+strings.TrimPrefix(name, "lutra_")+`"`) && name != "vllm:" {
			return fmt.Errorf("there is no metric %s", name)
		}
	case strings.HasPrefix(first, "/") && strings.Contains(n.sources["internal/chat"], `"`+first+`"`): // a command of a chat
	case endpoint.MatchString(span):
		m := endpoint.FindStringSubmatch(span)
		return n.served(m[1], m[2])
	case fileName.MatchString(span):
		if !slices.Contains(foreignFiles, span) && !n.exists(strings.TrimPrefix(span, "./")) {
			return fmt.Errorf("there is no file %s", span)
		}
	case folder.MatchString(span):
		if top, _, _ := strings.Cut(span, "/"); slices.Contains(n.paths, top+"/") && !n.exists(strings.TrimSuffix(strings.TrimSuffix(span, "/..."), "/")) {
			return fmt.Errorf("there is no %s", span)
		}
	case testName.MatchString(span):
		if !strings.Contains(n.all, "func "+span+"(") {
			return fmt.Errorf("there is no %s", span)
		}
	case variable.MatchString(span):
		if name := variable.FindString(span); !strings.Contains(n.all, name) {
			return fmt.Errorf("nothing reads %s", name)
		}
	case !aboutCode(doc) && codeWord.MatchString(span):
		if !strings.Contains(n.all, `"`+span) && !strings.Contains(n.all, span+`"`) && !strings.Contains(n.all, "\n    "+span+": ") { // a field of Python
			return fmt.Errorf("no program says %s", span)
		}
	default:
		return n.identified(doc, span)
	}
	return nil
}

// parses checks that a command line of a program uses existing commands and flags.
func parses(program string, args []string) error {
	root := cli.Command(io.Discard, io.Discard)
	if program == "lutra-lab" {
		root = commands.Command(io.Discard, io.Discard)
	}
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd.Hidden {
		return fmt.Errorf("%s is a command of lutra-lab", args[0])
	}
	var short *pflag.ValueRequiredError // prose may name a flag without its value
	if err := cmd.ParseFlags(rest); err != nil && !errors.As(err, &short) && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if cmd.HasSubCommands() {
		return cmd.Args(cmd, cmd.Flags().Args())
	}
	return nil
}

// exists finds a file or folder by its path, or the end of it; * stands for any
// part of a name.
func (n *naming) exists(name string) bool {
	return slices.ContainsFunc(n.paths, func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		parts, want := strings.Split(p, "/"), strings.Split(name, "/")
		if len(parts) < len(want) {
			return false
		}
		ok, _ := path.Match(name, strings.Join(parts[len(parts)-len(want):], "/"))
		return ok
	})
}

// served asks the live server for a path, by a method, or by GET.
func (n *naming) served(method, p string) error {
	p = strings.ReplaceAll(p, "{name}", "lutra-tiny-s")
	req, err := http.NewRequest(cmp.Or(strings.TrimSpace(method), http.MethodGet), n.base+p, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNotFound && strings.Contains(string(answer), "There is nothing at") || resp.StatusCode == http.StatusMethodNotAllowed && method != "" {
		return fmt.Errorf("the server has no %s%s", method, p)
	}
	return nil
}

// headings are the anchors of a document, as GitHub makes them.
func headings(text string) (anchors []string) {
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		slug := unslugged.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(slug, " ", "-"))
	}
	return anchors
}

func TestDocumentsNameOnlyWhatThereIs(t *testing.T) {
	n := newNaming(t)
	docs := documents(t)
	for _, name := range n.paths { // of fixtures and of the training, whose examples are not run
		if path.Base(name) == "README.md" && docs[name] == "" {
			text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			docs[name] = string(text)
		}
	}
	anchors := map[string][]string{}
	for name, text := range docs {
		anchors[name] = headings(text)
	}
	for _, name := range sortedNames(docs) {
		prose := fences.ReplaceAllString(docs[name], "")
		for _, m := range codeSpans.FindAllStringSubmatch(prose, -1) {
			if err := n.check(name, m[1]); err != nil {
				t.Errorf("%s: `%s`: %v", name, m[1], err)
			}
		}
		for _, m := range flags.FindAllStringSubmatch(strings.ReplaceAll(prose, "`", " "), -1) {
			if !slices.Contains(n.flags, m[1]) {
				t.Errorf("%s: no command has the flag %s", name, m[1])
			}
		}
		for _, m := range links.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			file := path.Join(path.Dir(name), target)
			if target == "" {
				file = name
			}
			if !slices.Contains(n.paths, file) && !slices.Contains(n.paths, file+"/") {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors[file], anchor) {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
}

func TestTheShippedConfigurationNamesOnlyWhatThereIs(t *testing.T) {
	n := newNaming(t)
	text, err := os.ReadFile(filepath.Join(repository, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, comment, _ := strings.Cut(line, "#")
		if _, command, ok := strings.Cut(comment, "lutra serve "); ok {
			if err := parses("lutra", append([]string{"serve"}, strings.Fields(command)...)); err != nil {
				t.Errorf("config.yaml: %s: %v", strings.TrimSpace(comment), err)
			}
		}
		for _, word := range strings.FieldsFunc(comment, func(r rune) bool { return strings.ContainsRune(" ,;:()\n", r) }) {
			if word = strings.TrimSuffix(word, "."); settingKey.MatchString(word) || strings.HasPrefix(word, "/") {
				if err := n.check("config.yaml", word); err != nil {
					t.Errorf("config.yaml: %v", err)
				}
			}
		}
	}
}

// A method is a row of a table in the code; users choose it from these.
func TestTheReferenceAndThePageNameEverySearchMethod(t *testing.T) {
	for file, written := range map[string]string{"docs/api.md": "`%s`", "web/js/methods.js": "  %s: {"} {
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range scaling.Names() {
			if !strings.Contains(string(text), fmt.Sprintf(written, name)) {
				t.Errorf("%s does not name the method %s", file, name)
			}
		}
	}
}

var errorCode = regexp.MustCompile(`(?:unavailable|broken|forbidden|InvalidStatus\([^",]+, )\(?"([a-z_]+)"|Code\w*:? += ?"([a-z_]+)"|Code: +"([a-z_]+)"`)

func TestTheReferenceListsEveryErrorCode(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Status codes\n")
	_, sources := repositoryFiles(t)
	codes := map[string]bool{}
	for _, folder := range []string{"server", "server/api", "server/jsonread", "tts/scaling"} {
		for _, m := range errorCode.FindAllStringSubmatch(sources[folder], -1) {
			codes[m[1]+m[2]+m[3]] = true
		}
	}
	delete(codes, "client_closed_request") // nobody receives it
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !strings.Contains(table, "`"+code+"`") {
			t.Errorf("the table of status codes lacks %s", code)
		}
	}
	if len(codes) < 30 {
		t.Errorf("only %d codes were found: %v", len(codes), slices.Sorted(maps.Keys(codes)))
	}
}
