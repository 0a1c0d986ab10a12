package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lutra-lm/lutra"

// layers is the import rule: each package may import the ones listed with it and
// their parts, and nothing else of this module but its own parts. Data flows down
// and back once. Keys are longest-prefix matches.
var layers = map[string][]string{
	"":                   {"internal/cli"},
	"internal/cli":       {"internal/chat", "internal/replay", "hexagon", "internal/hub", "internal/engines", "internal/config", "internal/usage", "internal/output", "internal/errtext", "internal/apiclient", "internal/memory", "internal/doctor", "web", "server", "tts", "batcher", "models", "kernels", "internal/kvevents", "internal/workers", "internal/tracing", "internal/parallel", "internal/cpulimit", "internal/sandbox"},
	"internal/chat":      {"internal/engines", "internal/config", "internal/apiclient", "internal/usage", "internal/output", "internal/errtext", "tts", "batcher/sampling", "models"},
	"internal/replay":    {"internal/apiclient", "internal/output", "server/receipt"},
	"internal/engines":   {"internal/config", "internal/usage", "internal/output", "internal/memory", "server/registry", "server/residency", "tts", "batcher", "models", "kernels", "hexagon", "internal/parallel"},
	"internal/config":    {"hexagon", "internal/hub", "internal/usage", "internal/output", "internal/settings", "internal/memory", "internal/kvevents", "internal/workers", "server", "tts", "batcher", "models"},
	"internal/settings":  {"internal/usage", "internal/errtext"}, // knows no section
	"internal/apiclient": {"internal/usage", "internal/output"},
	"internal/errtext":   {},
	"internal/usage":     {"internal/errtext", "tts/scaling"},
	"internal/output":    {},
	"internal/memory":    {"internal/cgroup"},
	"internal/cgroup":    {}, // what a container may use
	"internal/doctor":    {"internal/cgroup", "internal/hub", "internal/memory", "internal/output", "internal/sandbox", "kernels", "kernels/bench"},
	"web":                {"internal/static"},
	"internal/manual":    {"internal/static"},
	"internal/static":    {},
	"server":             {"web", "internal/manual", "tts", "batcher", "models", "internal/cpulimit", "internal/errtext", "internal/parallel"},
	"server/admission":   {},
	"server/jsonread":    {"internal/errtext"},
	"server/jsonwrite":   {"internal/parallel"},
	"server/metrics":     {"server/admission", "tts", "batcher"},
	"server/receipt":     {"server/jsonread", "batcher/sampling", "tts"},
	"server/api":         {"server/residency", "server/admission", "server/registry", "server/jsonread", "server/jsonwrite", "tts", "internal/cpulimit", "internal/errtext"},
	"server/fields":      {"server/report", "server/api", "server/registry", "server/jsonread", "grammar", "batcher", "tts", "models/template", "models/tokenizer"},
	"server/report":      {"server/jsonwrite", "batcher/sampling", "tts"},
	"server/openai":      {"server/fields", "server/report", "server/api", "server/receipt", "server/registry", "server/jsonread", "server/jsonwrite", "internal/cpulimit", "tts", "batcher", "models"},
	"server/vllm":        {"server/fields", "server/report", "server/api", "server/registry", "server/jsonread", "server/jsonwrite", "internal/cpulimit", "tts", "models/template"},
	"server/llamacpp":    {"server/residency", "server/registry", "server/fields", "server/report", "server/api", "server/jsonread", "server/jsonwrite", "tts", "batcher/sampling", "models/tokenizer", "internal/cpulimit"},
	"server/responses":   {"server/fields", "server/report", "server/api", "server/jsonread", "server/jsonwrite", "grammar", "tts", "models/template", "batcher/sampling"},
	"server/ollama":      {"server/residency", "server/fields", "server/report", "server/api", "server/registry", "server/jsonread", "server/jsonwrite", "grammar", "tts", "models/template", "batcher/sampling"},
	"server/anthropic":   {"server/admission", "server/fields", "server/report", "server/api", "server/registry", "server/jsonread", "server/jsonwrite", "tts", "models/template", "batcher/sampling"},
	"server/openapi":     {"server/api", "server/fields", "batcher/sampling", "tts/scaling"},
	"server/jobs":        {"server/fields", "server/api", "server/jsonread", "server/jsonwrite", "batcher", "internal/cpulimit", "internal/errtext", "internal/parallel"},
	"server/registry":    {"server/receipt", "tts", "models", "batcher/sampling"},
	"server/residency":   {"server/registry", "internal/parallel"},
	"tts/verify":         {"grammar", "tts/answer", "tts/scaling", "internal/cpulimit", "internal/sandbox"},
	"internal/sandbox":   {"internal/cpulimit", "internal/parallel"},
	"tts":                {"grammar", "batcher", "models", "internal/cpulimit", "internal/parallel"},
	"tts/reward":         {"tts", "batcher", "models", "internal/cpulimit", "internal/parallel"},
	"tts/probe":          {"tts", "batcher/sampling", "models"},
	"tts/judge":          {"tts", "batcher", "models", "internal/parallel"},
	"tts/structure":      {"grammar", "models/tokenizer"},
	"tts/text":           {"models/template", "models/tokenizer"},
	"tts/constrain":      {"tts/structure", "tts/text", "grammar", "batcher/sampling", "models/tokenizer", "internal/cpulimit"},
	"grammar":            {},
	"grammar/regex":      {"grammar/budget"},
	"grammar/budget":     {},
	"grammar/schema":     {"grammar", "grammar/regex"},
	"grammar/gbnf":       {"grammar", "grammar/regex"},
	"tts/embed":          {"tts", "batcher", "models", "internal/parallel"},
	"tts/ttstest":        {"tts", "batcher", "models", "kernels"},
	"tts/scaling":        {"tts/answer", "internal/errtext"},
	"tts/profile":        {"tts/scaling"},
	"tts/search":         {"tts", "batcher", "internal/cpulimit", "internal/parallel"},
	"tts/answer":         {},
	"tts/toolcall":       {"tts/text", "grammar", "models/template", "models/tokenizer"},
	"batcher":            {"models", "kernels", "internal/parallel"},
	"batcher/sampling":   {"kernels", "models/gguf"},
	"batcher/schedule":   {},
	"internal/adversary": {},
	"docs/examples":      {}, // what users of the server write
	"internal/cpulimit":  {},
	"internal/hub":       {"models/gguf/parts"},
	"internal/parallel":  {},
	"internal/tracing":   {},
	"internal/kvevents":  {"internal/zmtp", "internal/usage", "models/kv", "internal/parallel"},
	"internal/zmtp":      {"internal/parallel"},
	"internal/workers":   {"tts", "batcher/sampling", "internal/parallel"},

	// The floors of models (docs/adr/0001-layers.md). hexagon is a backend, which
	// internal/engines hands to the loader; models/recurrent is to the states of
	// recurrent layers, which kv holds, what attention is to blocks.
	"hexagon":                {"models", "kernels", "internal/parallel"},
	"hexagon/pipeline":       {},
	"hexagon/experts":        {},
	"hexagon/device":         {"hexagon/layout", "hexagon/ref", "hexagon/hmx", "kernels"},
	"hexagon/device/qemu":    {"hexagon/device", "hexagon/dsp", "hexagon/layout", "kernels"},
	"hexagon/device/fastrpc": {"hexagon/device", "hexagon/layout"},
	"hexagon/dsp":            {},
	"hexagon/ref":            {"hexagon/layout", "hexagon/hmx"},
	"hexagon/hmx":            {"hexagon/layout", "kernels"},
	"hexagon/layout":         {"kernels"},
	"models/toy":             {"models"},
	"models/synthetic":       {"models/gguf"},
	"models/embedded":        {"models/gguf"},
	"models":                 {"kernels", "internal/parallel"},
	"models/attention":       {"models/kv", "kernels"},
	"models/recurrent":       {"kernels"},
	"models/expertcache":     {},
	"models/kv":              {"kernels"},
	"models/kv/offload":      {"models/kv", "models/disk", "internal/parallel"},
	"models/load":            {"models/weights", "models/gguf", "kernels", "internal/parallel"},
	"models/weights":         {"models/gguf", "kernels", "internal/parallel"},
	"models/tokenizer":       {"models/gguf"},
	"models/huggingface":     {"models/safetensors", "models/tokenizer", "models/gguf", "models/disk", "kernels", "internal/parallel"},
	"models/safetensors":     {"models/disk"},
	"models/gguf":            {"models/disk", "kernels"},
	"models/disk":            {"internal/parallel"},
	"models/template":        {},

	"grammar/grammartest": {"grammar", "models"}, // for tests
	"internal/clienttest": {},
	"docs":                {}, // tests alone
	"internal/sweep":      {},
	"internal/mutate":     {"models/gguf"},

	"models/gguf/parts": {}, // names of files: internal/hub pulls what models/gguf opens

	// The floors of kernels (docs/adr/0001-layers.md).
	"kernels/bench":      {"kernels"},
	"kernels":            {},
	"kernels/choice":     {"kernels/stream", "kernels/acts", "kernels/matrix", "kernels/meter", "kernels/pool", "kernels/cpu"},
	"kernels/ternary":    {"kernels/choice", "kernels/stream", "kernels/acts", "kernels/matrix", "kernels/meter", "kernels/pool", "kernels/cpu"},
	"kernels/grouped":    {"kernels/choice", "kernels/stream", "kernels/bands", "kernels/acts", "kernels/matrix", "kernels/pool", "kernels/vector", "kernels/cpu"},
	"kernels/dense":      {"kernels/bands", "kernels/acts", "kernels/matrix", "kernels/pool", "kernels/vector", "kernels/cpu"},
	"kernels/bands":      {"kernels/stream", "kernels/acts", "kernels/matrix", "kernels/pool", "kernels/cpu"},
	"kernels/stream":     {"kernels/acts", "kernels/pool", "kernels/cpu"},
	"kernels/acts":       {"kernels/pool", "kernels/vector", "kernels/cpu"},
	"kernels/attention":  {"kernels/vector", "kernels/cpu"},
	"kernels/delta":      {"kernels/vector", "kernels/cpu"},
	"kernels/vector":     {"kernels/cpu"},
	"kernels/pool":       {"kernels/meter", "kernels/cpu", "internal/parallel"},
	"kernels/matrix":     {"kernels/meter", "kernels/cpu", "internal/parallel"},
	"kernels/meter":      {},
	"kernels/cpu":        {},
	"kernels/kerneltest": {"kernels/ternary", "kernels/grouped", "kernels/dense", "kernels/matrix", "kernels/meter", "kernels/vector", "kernels/cpu"},

	// The laboratory, a module of its own (docs/adr/0073-releases.md).
	"lab":                {"lab/commands"},
	"lab/commands":       {"lab", "internal/cli", "hexagon", "internal/hub", "internal/engines", "internal/config", "internal/manual", "internal/usage", "internal/output", "internal/apiclient", "tts", "grammar", "batcher", "models", "kernels"},
	"lab/docs":           {}, // tests alone
	"lab/bench":          {"lab/chart", "internal/engines", "internal/config", "internal/apiclient", "internal/usage", "internal/output", "tts", "grammar", "batcher", "models", "kernels"},
	"lab/npu/ablation":   {"hexagon/dsp"},
	"lab/npu/soc":        {"lab/npu/ablation", "lab/npu/tiling", "lab/npu/timeline", "hexagon"},
	"lab/npu/timeline":   {"hexagon/pipeline"},
	"lab/npu/tiling":     {},
	"lab/npu":            {"lab/chart", "internal/engines", "internal/config", "lab/reference", "lab/eval", "internal/usage", "internal/output", "internal/errtext", "tts", "models", "kernels", "hexagon"},
	"lab/reference":      {"internal/engines", "internal/config", "internal/usage", "models", "kernels"},
	"lab/chart":          {},
	"lab/eval":           {"lab/chart", "internal/apiclient", "tts", "models", "models/embedded"},
	"lab/probe":          {"lab/eval", "internal/parallel", "tts", "batcher", "models", "kernels"},
	"lab/tools/wasmfuel": {}, // counts steps into interpreters
	"lab/soak":           {"lab/chart", "models"},
	"lab/tools/soak":     {"lab/soak"},          // requests by the million
	"lab/tools/armcount": {},                    // counts loops of the arm64 kernels
	"lab/tools/cores":    {"models", "kernels"}, // models pools of many threads
	"lab/convert":        {"models/gguf", "models/huggingface", "kernels/vector"},
	"lab/quantize":       {"models/gguf", "kernels/vector", "internal/parallel"},
}

// reserved packages are for those layers alone that are listed with them.
var reserved = map[string][]string{
	"models/attention":            {"models"},
	"models/recurrent":            {"models"},
	"models/weights":              {"models", "models/load", "internal/config", "internal/cli", "lab/bench", "lab/commands"}, // settings and flags list packings
	"kernels/bench":               {"internal/cli", "internal/doctor", "lab/bench", "lab/tools/cores"},                       // measures; what serves does without
	"tts/ttstest":                 {},                                                                                        // for tests
	"grammar/grammartest":         {},                                                                                        // for tests
	"kernels/kerneltest":          {},                                                                                        // for tests
	"kernels/kerneltest/matrices": {},
	"internal/clienttest":         {}, // for tests
	"internal/sweep":              {},
	"internal/mutate":             {}, // for tests
}

func TestImportsPointDownOnly(t *testing.T) {
	var out []byte
	for _, module := range []string{".", "lab"} {
		list, err := exec.Command("go", "-C", module, "list", "-json=ImportPath,Imports", "./...").Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", module, err)
		}
		out = append(out, list...)
	}
	seen := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&pkg); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from := relative(pkg.ImportPath)
		layer, ok := layerOf(from)
		if !ok {
			t.Errorf("package %s belongs to no layer: give it one in this table", pkg.ImportPath)
			continue
		}
		for _, imp := range pkg.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			if to := relative(imp); !allowed(layer, from, to) {
				t.Errorf("%s imports %s: layer %q may import only %v", from, to, layer, layers[layer])
			} else if only, ok := reserved[to]; ok && !slices.Contains(only, layer) {
				t.Errorf("%s imports %s, which is for %v alone", from, to, only)
			}
		}
	}
	if seen < 5 {
		t.Fatalf("go list named %d packages: the test has lost sight of the tree", seen)
	}
}

func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// layerOf finds the longest key that is pkg or a parent folder of it.
func layerOf(pkg string) (string, bool) {
	for p := pkg; ; {
		if _, ok := layers[p]; ok && (p != "" || pkg == "") {
			return p, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return "", false
		}
		p = p[:i]
	}
}

func allowed(layer, from, to string) bool {
	if strings.HasPrefix(to, layer+"/") && layer != "" {
		return true // a package's own parts
	}
	target, _ := layerOf(to)
	return target == layer && from != to || slices.ContainsFunc(layers[layer], func(l string) bool {
		return to == l || strings.HasPrefix(to, l+"/")
	})
}
