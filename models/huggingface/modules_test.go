package huggingface

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/safetensors"
)

// withDense is a directory whose vectors go through Dense modules, after change of what describes them.
func withDense(t *testing.T, change func(modules []module, dense map[string]any) []module) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../tts/embed/testdata/reference/gemma-embedding")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fileModules)
	var list []module
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "2_Dense"), fileConfig, func(dense map[string]any) { list = change(list, dense) })
	if text, err = json.Marshal(list); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDenseModulesThatAreNotReadAreRefusedByName(t *testing.T) {
	set := func(key string, value any) func([]module, map[string]any) []module {
		return func(m []module, dense map[string]any) []module { dense[key] = value; return m }
	}
	add := func(kind, path string) func([]module, map[string]any) []module {
		return func(m []module, _ map[string]any) []module { return append(m, module{Path: path, Type: kind}) }
	}
	for _, c := range []struct {
		change func([]module, map[string]any) []module
		want   string
	}{
		{set("bias", true), "2_Dense/config.json: bias is true: unsupported"},
		{set("activation_function", "torch.nn.modules.activation.Tanh"), `2_Dense/config.json: activation_function is "torch.nn.modules.activation.Tanh": unsupported`},
		{set("in_features", 31), "2_Dense: malformed safetensors: it must hold linear.weight of shape [96 31]"},
		{set("out_features", nil), "2_Dense/config.json: out_features is missing"},
		{add("x.Dense", "3_Dense"), `module "x.Dense" at "3_Dense": unsupported`},
		{add("x.Pooling", "../1_Pooling"), `module "x.Pooling" at "../1_Pooling": unsupported`},
		{add("x.LayerNorm", "5_Norm"), `module "x.LayerNorm" at "5_Norm": unsupported`},
		{func(m []module, _ map[string]any) []module { m[2].Path = "2_Else"; return m }, "2_Else/config.json is missing"},
		{func(m []module, _ map[string]any) []module { m[2].Path = "../2_Dense"; return m }, `at "../2_Dense": unsupported`},
	} {
		f, err := Open(withDense(t, c.change))
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open gave %v, want an error that says %q", err, c.want)
		}
	}
	dir := withDense(t, func(m []module, _ map[string]any) []module { return m })
	if err := os.Remove(filepath.Join(dir, "3_Dense", safetensors.Single)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "3_Dense: ") {
		t.Errorf("a module without weights: %v", err)
	}
}
