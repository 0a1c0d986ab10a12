package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

func TestParseReadsNamesOfTheHub(t *testing.T) {
	for name, want := range map[string]Ref{
		"hf:acme/Tiny-GGUF":                   {Owner: "acme", Repo: "Tiny-GGUF"},
		"hf:acme/Tiny-GGUF:Q4_K_M":            {Owner: "acme", Repo: "Tiny-GGUF", Quant: "Q4_K_M"},
		"hf:acme/Tiny-GGUF:sub/Tiny.gguf":     {Owner: "acme", Repo: "Tiny-GGUF", File: "sub/Tiny.gguf"},
		"hf:acme/tiny.1:Tiny-UD-Q4_K_XL.GGUF": {Owner: "acme", Repo: "tiny.1", File: "Tiny-UD-Q4_K_XL.GGUF"},
	} {
		got, err := Parse(name)
		if err != nil || got != want || got.String() != name {
			t.Errorf("Parse(%q) = %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "hf:", "hf:acme", "acme/Tiny", "hf:acme/Tiny/x", "hf:/Tiny", "hf:acme/", "hf:../Tiny", "hf:acme/..", "hf:acme/.Tiny",
		"hf:acme--x/Tiny", "hf:acme/Tiny:", "hf:acme/Tiny:../x.gguf", "hf:acme/Tiny:/x.gguf", `hf:acme/Tiny:a\x.gguf`, "hf:acme/Tiny:a:b.gguf", "hf:acme/Tiny:x.bin",
		"hf:acme/Tiny:Q4 K", "hf:acme/Tiny\x00", "hf:" + strings.Repeat("a", 200) + "/b"} {
		if got, err := Parse(name); err == nil {
			t.Errorf("Parse(%q) = %+v", name, got)
		}
	}
}

func TestModelsAreCalledByTheirRepository(t *testing.T) {
	for repo, want := range map[string]string{"Qwen3-4B-GGUF": "Qwen3-4B", "bitnet-b1.58-2B-4T-gguf": "bitnet-b1.58-2B-4T", "Tiny": "Tiny", "-gguf": "-gguf"} {
		if got := (Ref{Repo: repo}).Name(); got != want {
			t.Errorf("Name of %s = %s, want %s", repo, got, want)
		}
	}
}

func TestTheFileIsChosenByNameQuantisationOrDefault(t *testing.T) {
	many := []string{"README.md", "T-Q8_0.gguf", "T-Q4_K_M.gguf", "T-Q4_K_S.gguf", "T-PQ2_0.gguf", "T-Q2_0.gguf", "T-F16-00001-of-00002.gguf", "T-F16-00002-of-00002.gguf",
		"mmproj-T-Q4_K_M.gguf", "T.imatrix.gguf", "UD/T-UD-Q4_K_XL.gguf", "T-dspark-Q4_1.gguf"}
	for _, c := range []struct {
		ref   Ref
		files []string
		want  string
	}{
		{Ref{}, many, "T-PQ2_0.gguf"},
		{Ref{}, []string{"T-UD-TQ1_0.gguf", "T-Q4_K_M.gguf", "T-UD-Q4_K_XL.gguf"}, "T-UD-Q4_K_XL.gguf"},
		{Ref{}, []string{"T-PQ2_0.gguf", "T-PTQ1_0.gguf", "T-mmproj-Q8_0.gguf"}, "T-PTQ1_0.gguf"},
		{Ref{}, []string{"mtp-T-Q4_0.gguf", "T-MTP-Q4_K_M.gguf"}, "T-MTP-Q4_K_M.gguf"},
		{Ref{File: "T-MTP-Q4_K_M.gguf"}, []string{"T-MTP-Q4_K_M.gguf", "T-MTP-Q8_0.gguf"}, "T-MTP-Q4_K_M.gguf"},
		{Ref{}, many[:2], "T-Q8_0.gguf"},
		{Ref{}, []string{"x/ggml-model-i2_s.gguf", "mmproj.gguf"}, "x/ggml-model-i2_s.gguf"},
		{Ref{}, []string{"a-F16.gguf", "a-Q8_0.gguf", "a-Q1_0.gguf"}, "a-Q1_0.gguf"},
		{Ref{Quant: "q4_k_s"}, many, "T-Q4_K_S.gguf"},
		{Ref{Quant: "Q2_0"}, many, "T-Q2_0.gguf"},
		{Ref{Quant: "PQ2_0"}, many, "T-PQ2_0.gguf"},
		{Ref{Quant: "Q4_K_XL"}, many, "UD/T-UD-Q4_K_XL.gguf"},
		{Ref{Quant: "i2_s"}, []string{"ggml-model-i2_s.gguf", "ggml-model-f32.gguf"}, "ggml-model-i2_s.gguf"},
		{Ref{File: "t-q8_0.GGUF"}, many, "T-Q8_0.gguf"},
		{Ref{File: "a.gguf"}, []string{"A.gguf", "a.gguf"}, "a.gguf"},
		{Ref{Quant: "F16"}, many, "T-F16-00001-of-00002.gguf"},
		{Ref{File: "T-F16-00002-of-00002.gguf"}, many, "T-F16-00001-of-00002.gguf"},
		{Ref{}, []string{"x-00001-of-00003.gguf", "x-00002-of-00003.gguf", "x-00003-of-00003.gguf"}, "x-00001-of-00003.gguf"},
	} {
		if got, err := choose(c.ref, c.files); err != nil || got != c.want {
			t.Errorf("choose(%+v, %q) = %q, %v; want %q", c.ref, c.files, got, err, c.want)
		}
	}
	for _, c := range []struct {
		ref   Ref
		files []string
		says  []string
	}{
		{Ref{}, nil, []string{"no GGUF model"}},
		{Ref{}, []string{"a-F16.gguf", "a-Q6_K.gguf"}, []string{"several", "a-F16.gguf, a-Q6_K.gguf"}},
		{Ref{File: "mtp-T-Q4_0.gguf"}, []string{"mtp-T-Q4_0.gguf"}, []string{"no language model"}},
		{Ref{Quant: "Q4_K_M"}, []string{"a-Q4_K_M.gguf", "b-Q4_K_M.gguf", "c-Q8_0.gguf"}, []string{"several", "a-Q4_K_M.gguf, b-Q4_K_M.gguf"}},
		{Ref{Quant: "Q5_K_M"}, many, []string{"fits no file", "T-Q8_0.gguf"}},
		{Ref{Quant: "Q4"}, many, []string{"fits no file"}},
		{Ref{File: "mmproj-T-Q4_K_M.gguf"}, many, []string{"no language model"}},
		{Ref{File: "no.gguf"}, many, []string{"is not there", "T-Q8_0.gguf"}},
	} {
		got, err := choose(c.ref, c.files)
		if !errors.Is(err, ErrChoice) {
			t.Errorf("choose(%+v) = %q, %v; want an error of choice", c.ref, got, err)
			continue
		}
		for _, words := range c.says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("choose(%+v): %q does not say %q", c.ref, err, words)
			}
		}
		if strings.Contains(err.Error(), "mmproj-") && c.ref.File != "mmproj-T-Q4_K_M.gguf" {
			t.Errorf("choose(%+v) offers a projector: %v", c.ref, err)
		}
	}
}

// mixture matches names that count the active weights too.
var mixture = regexp.MustCompile(`-a[0-9]+b\b`)

func TestTheCatalogueHoldsTogether(t *testing.T) {
	names := Names()
	if len(names) < 15 {
		t.Fatalf("%d models", len(names))
	}
	for i, e := range Catalogue() {
		if again, err := Parse(e.Ref.String()); err != nil || again != e.Ref || !isModel(e.Ref.File) {
			t.Errorf("%s is at %s: %v", e.Name, e.Ref, err)
		}
		if slices.Index(names, e.Name) != i || strings.ToLower(e.Name) != e.Name || e.Licence == "" || e.Good == "" || e.Storage == "" {
			t.Errorf("%+v is not complete, or there twice", e)
		}
		if e.Size < 100e6 || e.Memory < e.Size || e.Memory > 3*e.Size+5e8 {
			t.Errorf("%s of %d bytes wants %d of memory", e.Name, e.Size, e.Memory)
		}
		// Bits that weights have in files, with the embeddings that some models look up in each layer. A
		// mixture has more experts there than a token is multiplied with, and a model that embeds texts
		// only looks its token embeddings up.
		others := e.Output == 0 || mixture.MatchString(e.Name)
		if bits := float64(e.Size) * 8 / float64(e.Layers+e.Output); e.Layers < e.Output || e.OutputIn == "" || bits < 1.1 || bits > 10 && !others {
			t.Errorf("%s has %.1f bits for each of %d and %d weights", e.Name, bits, e.Layers, e.Output)
		}
		if r, ok, err := Resolve(e.Name); !ok || err != nil || r != e.Ref {
			t.Errorf("Resolve(%s) = %v, %v, %v", e.Name, r, ok, err)
		}
		if found, ok := Named(e.Ref); !ok || found.Name != e.Name {
			t.Errorf("Named(%s) = %+v", e.Ref, found)
		}
	}
	if _, ok, err := Resolve("model.gguf"); ok || err != nil {
		t.Errorf("a file is taken for a name of the hub: %v", err)
	}
}

func TestTheEnvironmentIsReadAsHuggingFaceHubReadsIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := filepath.FromSlash("/home/otter")
	at := func(parts ...string) string { return filepath.Join(parts...) }
	for _, c := range []struct {
		env  map[string]string
		want Options
	}{
		{nil, Options{Cache: at(home, ".cache", "huggingface", "hub")}},
		{map[string]string{"XDG_CACHE_HOME": "/x"}, Options{Cache: at("/x", "huggingface", "hub")}},
		{map[string]string{"HF_HOME": dir, "XDG_CACHE_HOME": "/x"}, Options{Cache: at(dir, "hub"), Token: "hf_file"}},
		{map[string]string{"HF_HOME": dir, "HF_TOKEN": " hf_env\n"}, Options{Cache: at(dir, "hub"), Token: "hf_env"}},
		{map[string]string{"HF_HOME": dir, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "yes"}, Options{Cache: at(dir, "hub")}},
		{map[string]string{"HF_HOME": "/h", "HF_HUB_CACHE": "~/models", "HUGGINGFACE_HUB_CACHE": "/old"}, Options{Cache: home + "/models"}},
		{map[string]string{"HUGGINGFACE_HUB_CACHE": "$DISK/models", "DISK": "/d"}, Options{Cache: "/d/models"}},
		{map[string]string{"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_SYMLINKS": "true", "HF_HUB_CACHE": "/c"}, Options{Cache: "/c", Offline: true, Copy: true}},
		{map[string]string{"HF_HUB_CACHE": "/c", "HF_TOKEN_PATH": filepath.Join(dir, "token")}, Options{Cache: "/c", Token: "hf_file"}},
		{map[string]string{"TRANSFORMERS_OFFLINE": "on", "HF_HUB_CACHE": "/c"}, Options{Cache: "/c", Offline: true}},
		{map[string]string{"HF_HUB_OFFLINE": "0", "HF_HUB_CACHE": "/c", "HF_ENDPOINT": "http://mirror:8000/hf/"}, Options{Cache: "/c", Endpoint: "http://mirror:8000/hf/"}},
	} {
		if c.want.Endpoint == "" {
			c.want.Endpoint = defaultEndpoint
		}
		if got, err := FromEnvironment(func(k string) string { return c.env[k] }, home); err != nil || !same(got, c.want) {
			t.Errorf("FromEnvironment(%v) = %+v, %v; want %+v", c.env, got, err, c.want)
		}
	}
	if _, err := FromEnvironment(func(string) string { return "" }, ""); err == nil || !strings.Contains(err.Error(), "HF_HOME") {
		t.Errorf("without a home: %v", err)
	}
	for key, values := range map[string][]string{
		"HF_ENDPOINT": {"huggingface.co", "ftp://x", "https://", "https://user:secret@x", "https://x/?y=1", "http://%zz"},
		"HF_TOKEN":    {"hf_a b", "hf_\x00", "hf_\nHost: x", "ü"},
	} {
		for _, v := range values {
			_, err := FromEnvironment(func(k string) string { return map[string]string{key: v, "HF_HUB_CACHE": "/c"}[k] }, home)
			if err == nil || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "secret") || key == "HF_TOKEN" && strings.Contains(err.Error(), v) {
				t.Errorf("%s=%q: %v", key, v, err)
			}
		}
	}
}

func same(a, b Options) bool {
	return a.Cache == b.Cache && a.Endpoint == b.Endpoint && a.Token == b.Token && a.Offline == b.Offline && a.Copy == b.Copy
}

func TestAMirrorMayLieInAFolderOfItsHost(t *testing.T) {
	c, err := newClient(Options{Endpoint: "http://mirror:8000/hf/"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.at("acme", "T", "resolve", "main", "a b/c#d?.gguf").String(); got != "http://mirror:8000/hf/acme/T/resolve/main/a%20b/c%23d%3F.gguf" {
		t.Errorf("at = %s", got)
	}
}

func TestListAndRemoveKnowWhatThereIs(t *testing.T) {
	b := newBench(t)
	b.server.Put(repo, "copy/Tiny-Q8_0.gguf", b.file) // the same contents under another name
	b.server.Put("acme/Other-GGUF", "Other-I2_S.gguf", []byte("GGUF other"))
	b.pulled(t)
	again := Ref{Owner: "acme", Repo: "Tiny-GGUF", Quant: "Q8_0"}
	for _, ref := range []Ref{again, {Owner: "acme", Repo: "Other-GGUF"}} {
		if _, err := b.Pull(t.Context(), ref, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, stranger := range []string{"datasets--acme--x", "models--acme", "models--..--x", "version.txt"} {
		if err := os.Mkdir(filepath.Join(b.Cache(), stranger), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (list []string) {
		t.Helper()
		all, err := b.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if info, err := os.Stat(s.Path); err != nil || info.Size() != s.Size || s.Missing != 0 {
				t.Errorf("%+v: %v", s, err)
			}
			list = append(list, s.Ref.String())
		}
		return list
	}
	if got, want := names(), []string{"hf:acme/Other-GGUF:Other-I2_S.gguf", "hf:acme/Tiny-GGUF:Tiny-Q4_K_M.gguf", "hf:acme/Tiny-GGUF:copy/Tiny-Q8_0.gguf"}; !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
	blob := filepath.Join(b.Cache(), "models--acme--Tiny-GGUF", "blobs", hubtest.SHA256(b.file))
	if freed, err := b.Remove(again); err != nil || freed != 0 {
		t.Errorf("removing one of two names of a blob frees %d, %v", freed, err)
	}
	if _, err := os.Stat(blob); err != nil {
		t.Errorf("the blob of the other name is gone: %v", err)
	}
	if freed, err := b.Remove(tiny); err != nil || freed < int64(len(b.file)) {
		t.Errorf("Remove = %d, %v", freed, err)
	}
	if freed, err := b.Remove(Ref{Owner: "acme", Repo: "Other-GGUF"}); err != nil || freed == 0 {
		t.Errorf("removing a repository frees %d, %v", freed, err)
	}
	if got := names(); len(got) != 0 {
		t.Errorf("there is still %q", got)
	}
	for _, gone := range []string{"models--acme--Tiny-GGUF", "models--acme--Other-GGUF"} {
		if _, err := os.Stat(filepath.Join(b.Cache(), gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if _, err := b.Remove(tiny); !errors.Is(err, ErrAbsent) {
		t.Errorf("removing it again: %v", err)
	}
}

func TestRemoveFollowsNoLinkOutOfTheRepository(t *testing.T) {
	b := newBench(t)
	pointer := b.pulled(t)
	precious := filepath.Join(t.TempDir(), "precious.gguf")
	if err := os.WriteFile(precious, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(pointer), os.Symlink(precious, pointer)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Remove(tiny); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("the file that a link led to is gone")
	}
}

func TestSeveralModelsInTheCacheAreNoChoice(t *testing.T) {
	b := newBench(t)
	b.server.Put("acme/Two-GGUF", "Two-F16.gguf", []byte("GGUF 1"))
	b.server.Put("acme/Two-GGUF", "Two-Q6_K.gguf", []byte("GGUF 2"))
	two := Ref{Owner: "acme", Repo: "Two-GGUF"}
	for _, q := range []string{"F16", "Q6_K"} {
		if _, err := b.Pull(t.Context(), Ref{Owner: "acme", Repo: "Two-GGUF", Quant: q}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Find(two); !errors.Is(err, ErrAbsent) {
		t.Errorf("Find = %v; the hub may know better", err)
	}
	offline := b.open(t, Options{Cache: b.Cache(), Offline: true})
	if _, err := offline.Find(two); !errors.Is(err, ErrChoice) || !strings.Contains(err.Error(), "Two-Q6_K.gguf") {
		t.Errorf("Find offline = %v", err)
	}
}

func TestAChoiceAmongSeveralModelsHasAReason(t *testing.T) {
	for _, c := range []struct {
		ref   Ref
		files []string
		want  string
	}{
		{Ref{}, []string{"a-TQ2_0.gguf", "a-Q4_K_M.gguf"}, "TQ2_0 is what a model of few bits"},
		{Ref{}, []string{"a-Q4_K_M.gguf", "a-Q8_0.gguf"}, "Q4_K_M is a good size"},
		{Ref{}, []string{"a-Q4_K_M.gguf"}, ""},
		{Ref{Quant: "Q8_0"}, []string{"a-Q4_K_M.gguf", "a-Q8_0.gguf"}, ""},
	} {
		file, err := choose(c.ref, c.files)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := instead(c.ref, file, c.files, room{}); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q of %q: %q, want %q", file, c.files, got, c.want)
		}
	}
}

func TestAModelLargerThanFreeMemoryIsPassedOver(t *testing.T) {
	const gb = 1_000_000_000
	sizes := map[string]int64{"T-F16.gguf": 54 * gb, "T-Q8_0.gguf": 29 * gb, "T-UD-Q4_K_XL.gguf": 18 * gb, "T-Q4_K_M.gguf": 17 * gb, "T-Q3_K_M.gguf": 13 * gb, "T-Q2_K.gguf": 10 * gb, "T-IQ1_S.gguf": 6 * gb,
		"T-draft-Q4_0.gguf": gb, "T-BF16-00001-of-00002.gguf": 30 * gb, "T-BF16-00002-of-00002.gguf": 24 * gb}
	var all, list []string
	var l listing
	for name, size := range sizes {
		all = append(all, name)
		list = append(list, fmt.Sprintf(`{"rfilename":%q,"lfs":{"size":%d}}`, name, size))
	}
	if err := json.Unmarshal([]byte(`{"siblings":[`+strings.Join(list, ",")+`]}`), &l); err != nil {
		t.Fatal(err)
	}
	few := []string{"B-PQ2_0.gguf", "B-PTQ1_0.gguf", "B-F16.gguf", "B-Q2_0.gguf"}
	for _, c := range []struct {
		ref   Ref
		files []string
		free  int64
		want  string
		says  string
	}{
		{Ref{}, all, 0, "T-UD-Q4_K_XL.gguf", "good size"},
		{Ref{}, all, 18 * gb, "T-UD-Q4_K_XL.gguf", "good size"},
		{Ref{}, all, 18*gb - 1, "T-Q4_K_M.gguf", "Q4_K_M is a good size for quality, and the repository has no type of few bits; T-UD-Q4_K_XL.gguf has 18.0 GB, and 18.0 GB of memory are free"},
		{Ref{}, all, 16 * gb, "T-Q3_K_M.gguf", "it is the largest that fits; T-UD-Q4_K_XL.gguf has 18.0 GB, and 16.0 GB of memory are free"},
		{Ref{}, all, 6 * gb, "T-IQ1_S.gguf", "largest that fits"},
		{Ref{}, all, 5 * gb, "T-UD-Q4_K_XL.gguf", "no smaller file of the model that fits"},
		{Ref{Quant: "Q8_0"}, all, 5 * gb, "T-Q8_0.gguf", ""},
		{Ref{File: "T-F16.gguf"}, all, 5 * gb, "T-F16.gguf", ""},
		{Ref{}, []string{"T-BF16-00001-of-00002.gguf", "T-BF16-00002-of-00002.gguf"}, gb, "T-BF16-00001-of-00002.gguf", ""},
		{Ref{}, few, 5 * gb, "B-PTQ1_0.gguf", "few bits"},
	} {
		set, why, err := chosen(c.ref, c.files, l.room(func() int64 { return c.free }))
		if err != nil || set[0] != c.want || !strings.Contains(why, c.says) || (why == "") != (c.says == "") {
			t.Errorf("with %d bytes free, %+v is %q (%s), %v; want %s (%s)", c.free, c.ref, set, why, err, c.want, c.says)
		}
	}
}
