package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// recipesOf makes the recipes for archives of these targets, whose bytes are their names.
func recipesOf(t *testing.T, on []target) (archives, made []artifact) {
	t.Helper()
	var bundles []bundle
	for _, tg := range on {
		b := bundle{program: lutra, source: source{time: sample(t, tg).time, version: version{core: "1.2.0"}}, target: tg}
		bundles = append(bundles, b)
		ending := ".tar.gz"
		if tg.os == "windows" {
			ending = ".zip"
		}
		archives = append(archives, artifact{b.archiveName() + ending, []byte(b.archiveName())})
	}
	made, err := recipes(bundles, archives)
	if err != nil {
		t.Fatal(err)
	}
	return archives, made
}

// texts returns recipes by name, those in the archive of Nix too.
func texts(t *testing.T, made []artifact) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range made {
		if !strings.HasSuffix(a.name, ".tar.gz") {
			all[a.name] = string(a.data)
			continue
		}
		for _, f := range untar(t, a.data) {
			all[path.Base(f.path)] = string(f.data)
		}
	}
	return all
}

func TestRecipesNameEveryArchiveWithItsChecksum(t *testing.T) {
	archives, made := recipesOf(t, targets)
	all := texts(t, made)
	for _, a := range archives {
		url := "https://github.com/lutra-lm/lutra/releases/download/v1.2.0/" + a.name
		in := map[string]int{}
		for name, text := range all {
			before, after, found := strings.Cut(text, url)
			if !found {
				continue
			}
			in[name]++
			if strings.Contains(before, "{{") || !strings.Contains(strings.Join(strings.SplitAfterN(after, "\n", 3)[:2], ""), fmt.Sprintf("%x", sha256.Sum256(a.data))) {
				t.Errorf("%s: %s is not followed by its checksum", name, a.name)
			}
		}
		want := "map[lutra.rb:1 package.nix:1]"
		switch {
		case strings.Contains(a.name, "windows"):
			want = "map[LutraLM.Lutra.installer.yaml:1]"
		case strings.Contains(a.name, "android"):
			want = "map[]"
		}
		if got := fmt.Sprint(in); got != want {
			t.Errorf("%s is in %s, want %s", a.name, got, want)
		}
	}
	if len(all) != 6 {
		t.Errorf("%d recipes, want 6", len(all))
	}
}

func TestRecipesAreOfTheTargetsThatAreBuilt(t *testing.T) {
	for on, want := range map[target]int{{"linux", "arm64"}: 2, {"windows", "amd64"}: 3, {"android", "arm64"}: 0} {
		if _, made := recipesOf(t, []target{on}); len(made) != want {
			t.Errorf("%s: %d files, want %d", on, len(made), want)
		}
	}
	_, made := recipesOf(t, []target{{"linux", "arm64"}})
	if text := texts(t, made)["lutra.rb"]; strings.Contains(text, "on_macos") || strings.Contains(text, "on_intel") {
		t.Errorf("the formula names what is not there\n%s", text)
	}
}

// TestRecipesAreRead has Ruby and Nix parse them, where they are installed; Nix also evaluates the
// package, with stand-ins for nixpkgs.
func TestRecipesAreRead(t *testing.T) {
	_, made := recipesOf(t, targets)
	dir := t.TempDir()
	for name, text := range texts(t, made) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(want, program string, args ...string) {
		t.Helper()
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not here", program)
			return
		}
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %q: %v\n%s", program, args, err, out)
		}
	}
	try("Syntax OK", "ruby", "-wc", "lutra.rb")
	// Homebrew's words, as far as the formula uses them.
	try("bin man bash zsh fish etc serve", "ruby", "-e", formulaStandIn)
	try("genAttrs", "nix-instantiate", "--parse", "flake.nix")
	try(`"https://github.com/lutra-lm/lutra/releases/download/v1.2.0/lutra-1.2.0-linux-arm64.tar.gz"`, "nix-instantiate", "--eval", "--expr", `(import ./package.nix {
  lib = { licenses.asl20 = "asl20"; sourceTypes.binaryNativeCode = "binary"; };
  stdenvNoCC = { hostPlatform.system = "aarch64-linux"; mkDerivation = x: builtins.deepSeq x x; };
  fetchurl = x: x; installShellFiles = "hooks";
}).src.url`)
}

// formulaStandIn loads the formula with a class that takes its words, and runs its blocks.
const formulaStandIn = `
$said = []
class Where
  def initialize(name) = @name = name
  def install(what) = $said << @name
  def /(part) = Where.new(@name)
  def to_s = @name
end
class Formula
  class << self
    %i[desc homepage version license url sha256 keep_alive log_path error_log_path].each { |w| define_method(w) { |*| } }
    %i[on_macos on_linux on_arm on_intel].each { |w| define_method(w) { |&b| class_eval(&b) } }
    %i[opt_bin etc var].each { |w| define_method(w) { Where.new(w.to_s) } }
    def run(line) = $said << line[1]
    def service(&b) = @service = b
    def serve = class_eval(&@service)
    def test(&b) = @test = b
  end
  { bin: "bin", man1: "man", bash_completion: "bash", zsh_completion: "zsh", fish_completion: "fish", etc: "etc" }.each { |w, n| define_method(w) { Where.new(n) } }
end
load "./lutra.rb"
Lutra.new.install
Lutra.serve
puts $said.join(" ")
`

// TestWingetsSchemasAllowTheManifests reads schemas of github.com/microsoft/winget-cli,
// schemas/JSON/manifests/v1.10.0, from the folder LUTRA_WINGET_SCHEMAS.
func TestWingetsSchemasAllowTheManifests(t *testing.T) {
	_, made := recipesOf(t, targets)
	all := texts(t, made)
	for name, schema := range map[string]string{
		"LutraLM.Lutra.yaml":              "manifest.version.1.10.0.json",
		"LutraLM.Lutra.installer.yaml":    "manifest.installer.1.10.0.json",
		"LutraLM.Lutra.locale.en-US.yaml": "manifest.defaultLocale.1.10.0.json",
	} {
		var manifest map[string]any
		if err := yaml.Unmarshal([]byte(all[name]), &manifest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if manifest["PackageIdentifier"] != wingetName || manifest["PackageVersion"] != "1.2.0" || manifest["ManifestVersion"] != "1.10.0" {
			t.Errorf("%s says %v", name, manifest)
		}
		dir := os.Getenv("LUTRA_WINGET_SCHEMAS")
		if dir == "" {
			continue
		}
		s, err := jsonschema.NewCompiler().Compile(filepath.Join(dir, schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(plain(manifest)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Getenv("LUTRA_WINGET_SCHEMAS") == "" {
		t.Skip("LUTRA_WINGET_SCHEMAS names no folder of winget's schemas: the manifests were read as YAML alone")
	}
}

// plain turns what only YAML has, dates, into text, as winget reads them.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = plain(value)
		}
	case []any:
		for i, value := range v {
			v[i] = plain(value)
		}
	case fmt.Stringer:
		return strings.Fields(v.String())[0]
	}
	return v
}
