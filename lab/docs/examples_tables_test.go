package docs_test

import (
	"path/filepath"
	"strings"
)

// rightAnswers are the numbers that the embedded models must give to the questions of
// examples. Every question to them must be listed here.
var rightAnswers = []struct {
	question, answer string
}{
	{"What is 12 * 7?", "84"},
	{"What is 9 * 8?", "72"},
	{"A box holds 12 eggs. How many are in 7 boxes?", "84"},
	{"A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?", "84"},
	{"How many eggs does she have?", "84"}, // of what is piped in
	{"Ines has 75 candies. She buys 3 bags with 12 candies each. Next, 3 friends take 14 candies each. She sells all of them for 4 dollars each. How many dollars does she get?", "276"},
}

// otherQuestions go to models that know more than arithmetic; here noise answers them.
var otherQuestions = []string{"Name three rivers.", "Why is the sky blue?", "What is the weather in Berlin?"}

// notRun are the blocks that no test runs, by their first line, with the reason.
var notRun = map[string]string{
	"go test ./...":                                "this test is part of it",
	"model = \"default\"":                          "Codex' own; TestFunctionsOfANamespaceAreCalledByTheirOwnName asks as it does",
	"lutra logs --url http://127.0.0.1:8080":       "TestAServersLogIsShownToItsAdmin asks with the key that it needs",
	"lutra logs -f --tail 10 --url 127.0.0.1:6060": "TestAServersLogIsShownToItsAdmin does, and ends it",
	"docker build -t lutra .":                      "TestAContainerIsReachedAndHealthyAsTheDocumentsRunIt runs it without Docker",
	"docker compose -f deploy/compose.yaml up":     "TestComposeStartsWhatIsThere reads the file",
	"server {":       "TestExamplesOfProxiesPassChatsOn runs it",
	"chat.example {": "TestExamplesOfProxiesPassChatsOn runs it",
	"global":         "TestReplicasOnALANLoseOnlyStreamsThatHadBegun runs it",
	"map $request_body $beginning {   # the messages up to the first user's":                                                                                                   "TestReplicasOnALANLoseOnlyStreamsThatHadBegun runs it",
	"docker build -t registry.example/lutra:v1 .":                                                                                                                              "the gate's step helm renders what it installs",
	"go run -C lab ./tools/soak -requests 1000000 -out ../soak.out":                                                                                                            "takes a quarter of an hour; TestAServerIsAsBeforeAfterHundredsOfRequests is a short run",
	"curl -fsSL https://github.com/lutra-lm/lutra/releases/latest/download/install.sh | sh":                                                                                    "tools/release runs the script against a server of its archives",
	"lutra run hf:bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M":                                                                                                                 "fetches a model; TestTheHubsPagesShowCommandsThatLutraTakes reads the names",
	"sudo sysadminctl -addUser _lutra -UID 399 -roleAccount -home /usr/local/var/lutra -shell /usr/bin/false":                                                                  "macOS' own; tools/release holds the list to the unit of systemd",
	`sc.exe create lutra binPath= "\"C:\Program Files\Lutra\lutra.exe\" serve --config C:\ProgramData\Lutra\config.yaml" start= delayed-auto obj= "NT AUTHORITY\LocalService"`: "Windows' own; TestTheWindowsServiceStartsACommandThatIsThere reads it, internal/cli has the service's test",
	"sc.exe stop lutra": "Windows' own",
	"docker build -t registry.example/lutra:v1 . && docker push registry.example/lutra:v1":                   "needs a registry",
	"brew tap-new --no-git local/lutra":                                                                      "Homebrew is not here; tools/release has Ruby run the formula",
	"winget settings --enable LocalManifestFiles":                                                            "Windows' own; tools/release holds the manifests against winget's schemas",
	"nix run https://github.com/lutra-lm/lutra/releases/download/vVERSION/lutra-VERSION-nix.tar.gz -- serve": "fetches nixpkgs; tools/release has Nix read the package",
	"pkg install curl resolv-conf":                                                                           "needs a phone; the gate's step release runs the program of Android's archive",
	"sudo apt install ./lutra_VERSION_arm64.deb":                                                             "the gate's step release installs the package",
	"[Service]":                        "the gate's step release has systemd read it",
	"rules:":                           "the gate's step helm reads it",
	"apt-get install qemu-user-static": "the gate's step arm64 does the same",
	"model_list:":                      "TestReplicasOnALANLoseOnlyStreamsThatHadBegun runs it",
	"pip install 'litellm[proxy]==1.108.7'   # a pinned one: 1.82.7 and 1.82.8 were malicious":                                               "the gate's step fleet installs it, TestReplicasOnALANLoseOnlyStreamsThatHadBegun runs it",
	"apt-get install --no-install-recommends bochs      # Debian 12":                                                                         "the gate's steps avx512 and avxvnni do the same",
	"pip install 'ray[serve]==2.60.0'":                                                                                                       "needs machines; .ci/run ray runs the application on nodes of one",
	"pip install 'lm-eval[api]'":                                                                                                             "the gate's step lmeval installs it",
	"lm_eval run --model local-completions --tasks arc_easy,wikitext \\":                                                                     "fetches data sets; the gate's step lmeval runs the same on tasks of our own",
	"python3 tools/lmeval/compare.py --lutra ./lutra-lab --model lutra-tiny-l":                                                               "the gate's step lmeval runs it",
	"LUTRA_ADVERSARY=64,1000 go test ./internal/adversary -run ALutraServer -v -timeout 1h":                                                  "needs a machine to itself; a short run is one of the server's tests",
	"curl -Lo gsm8k-test.jsonl https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/test.jsonl":          "fetches data sets; files of the same layout are in lab/eval/testdata",
	"lutra-lab eval --model qwen2.5-coder-1.5b.gguf --data HumanEval.jsonl --methods best_of_n --n 8 --max-tokens 400 --concurrency 4 \\":    "takes an hour and a public model; TestTheEvidenceOfAPublicModelIsWhatItsJournalsGive reads its journal",
	"lutra-lab eval --model qwen2.5-coder-1.5b.gguf --data gsm-symbolic.jsonl --methods best_of_n --n 8 --max-tokens 400 --concurrency 8 \\": "takes two hours and a public model; TestTheEvidenceOfAPublicModelIsWhatItsJournalsGive reads its journal",
	"lutra-lab eval --model qwen2.5-coder-1.5b.gguf --data chain-sum.jsonl --methods best_of_n --n 8 --max-tokens 64 --concurrency 8 \\":     "takes a quarter of an hour and a public model; TestTheEvidenceOfAPublicModelIsWhatItsJournalsGive reads its journal",
	"pip install -r docs/examples/requirements.txt":                                                                                          "the gate's step examples installs it",
	"pip install gguf safetensors torch":                                                                                                     "fetches a checkpoint of gigabytes",
	"apt-get install qemu-user clang-19 lld-19 llvm-19 make gcc":                                                                             "the gate's step hexagon does the same",
	".ci/run clients                       # all of them, with a table of checks at the end":                                                 "fetches ten clients",
	"make -C hexagon/dsp sdk HEXAGON_SDK_ROOT=$HEXAGON_SDK_ROOT HEXAGON_CC=$HEXAGON_CC":                                                      "needs Qualcomm's SDK",
	"CGO_ENABLED=1 GOOS=android GOARCH=arm64 CC=aarch64-linux-android30-clang go build -tags fastrpc .":                                      "needs Android's NDK",
	"apt-get install llvm-22": "fetches a compiler",
	"go run -C lab ./tools/cores -model ../falcon3-1b-tq2_0.gguf -rows 1,16 -context 4": "takes a model of a billion weights; the simulation is tested beside it",
	"lutra npu selftest -o report.json":                                                 "needs a phone; TestTheSelftestOfTheDeviceInGoIsGreenAndSaved runs it without",
	"adb push lutra liblutra_skel.so /data/local/tmp/":                                  "needs a phone",
	"adb push lutra $(find hexagon -path '*v75/liblutra_skel.so') /data/local/tmp/":     "needs a phone",
}

// long are examples that compute for long, by their beginning, and what of them runs
// everywhere. All of each runs where LUTRA_EXAMPLES=all, as in the gate's step examples;
// elsewhere its command lines are read.
var long = map[string]string{
	"lutra-lab npu ablate accuracy --model":                                "TestAccuracyIsARowForEachScheme",
	"lutra-lab eval --model lutra-tiny-s --model lutra-tiny-l --soc 8gen3": "TestEvaluationModelsAnNPUsTimeAndEnergy",
	"lutra-lab eval --backend hexagon-go --soc elite":                      "TestEvaluationModelsAnNPUsTimeAndEnergy",
	"lutra-lab bench engine --model":                                       "TestBenchEngineProfilesEveryKernel",
	"lutra-lab bench engine --shape":                                       "TestBenchEngineReportsEveryTest",
	"lutra-lab bench growth --shape":                                       "TestBenchGrowthMeasuresAndDrawsEveryAxis",
	"lutra-lab eval --limit":                                               "TestEvalReportsAndContinues",
	"lutra-lab eval --split hard":                                          "TestEvalReportsAndContinues",
	"lutra-lab eval --methods":                                             "TestEvalReportsAndContinues",
	"lutra-lab eval --profile":                                             "TestEvalWritesAProfileThatServersRead",
	"lutra-lab eval --model ternary-bonsai-4b":                             "TestEvalReportsAndContinues",
	"lutra-lab npu doctor\nlutra ask":                                      "TestDevicesGiveTheSameAnswersAndTheSameLogits",
	"lutra-lab bench plan --rate":                                          "TestBenchPlanTellsWhatIsModelledAndWhatItCosts",
	"lutra-lab bench plan --model":                                         "TestBenchPlanTellsWhatIsModelledAndWhatItCosts",
	"lutra-lab bench kernels":                                              "TestCtrlCEndsABenchmarkOfKernelsWithItsRows",
	"lutra-lab bench kernels --":                                           "TestBenchKernelsComparesWithACommand",
	"lutra ask --backend hexagon-go":                                       "TestDevicesGiveTheSameAnswersAndTheSameLogits",
	"lutra-lab perplexity --model mixture.gguf --backend hexagon-go":       "TestAPlanOfExpertsRunsAndItsCapacitiesChangeNoLogits",
	"lutra-lab eval --model qwen3-1.7b --data math500-test.jsonl --thinking off --methods": "TestAnEvaluationWithoutThinkingContinues",
}

// shownAlone are the blocks that belong to no command, by document and beginning, and
// what they are.
var shownAlone = map[string]string{
	"docs/api.md {\"id\": \"lutra-tiny-l\"":              "a model of /v1/models, as the server's tests hold it",
	"docs/api.md {\"truncation\"":                        "a part of an answer, as the server's tests hold it",
	"docs/api.md \"test_time_scaling\":{":                "a part of a stream, as the server's tests hold it",
	"docs/api.md data: {":                                "a chunk of a stream, as the server's tests hold it",
	"docs/api.md Candidate 1 of 8":                       "what a search reports in words, which depends on its samples",
	"docs/command-line.md lutra-lab schema check: token": "what a check says, as the command's test holds it",
	"docs/architecture.md  HTTP ─▶":                      "a drawing",
	"docs/adr/0120-server-owners.md Server":              "a drawing",
	"docs/adr/0009-variants.md metadata":                 "a drawing",
	"docs/adr/0017-fields.md batcher":                    "a drawing",
	"docs/mixtures.md             CPU":                   "a drawing",
	"docs/command-line.md 10:04:05":                      "a log line, as TestARequestIsOneLineForPeople holds it",
	"docs/models.md {\"error\"":                          "what /readyz says while models load, as the server's tests hold it",
	"docs/models.md : loading":                           "what a stream says while its model loads, as the server's tests hold it",
	"docs/testing.md go test -c ──▶":                     "a drawing",
	"docs/serving.md {\"object\": \"list\"":              "what /usage says, as the server's tests hold it",
	"docs/fleet.md limit = 1 /":                          "a formula",
	"docs/clients.md {\"provider\"":                      "OpenCode's settings, as TestAgentsThatWriteCodeRunWithTheirDefaults has them",
}

// substitutes replace what examples name: addresses by the test server's, large
// sizes by small ones. Names of flags stay as they are.
func substitutes(base string) *strings.Replacer {
	address := strings.TrimPrefix(base, "http://")
	return strings.NewReplacer(
		"0.0.0.0:8080", "127.0.0.1:0", // servers that examples start
		"--models-dir models", "--models-dir .",
		"127.0.0.1:8080", address, "localhost:8080", address,
		"127.0.0.1:8000", address, // another server
		"--shape falcon3-1b", "--shape tiny", "--shape bitnet-2b", "--shape tiny", "--shape qwen3-30b-a3b", "--shape tiny", "--shape gpt-oss-20b", "--shape tiny",
		"--vocabulary ggml-vocab-llama-bpe.gguf", "--vocabulary lutra-tiny-s",
		"--contexts 128,512,2048", "--contexts 128,512", // the tiny shape's context is 1024
		"--limit 100", "--limit 1", "--limit 60", "--limit 1", "--limit 200", "--limit 1", "--limit 20", "--limit 1", "--limit 50", "--limit 1", "--limit 300", "--limit 1", "--limit 40", "--limit 1",
		"--max-tokens 2048", "--max-tokens 8", "--max-tokens 8192", "--max-tokens 8",
		"prompt-words=3000", "prompt-words=300", "--max-tokens 2000", "--max-tokens 20",
		"--requests 128", "--requests 32",
		"--shapes 2048x8192 --tokens 1,32", "--shapes 256x512 --tokens 2,32", // measuring one token takes more memory than caches have
		// Flags of the example itself come later and take precedence.
		// A Replacer requires longer names first.
		"lutra-lab bench kernels", "lutra-lab bench kernels --budget 1us --shapes 64x256 --tokens 2",
		"lutra-lab bench engine", "lutra-lab bench engine --reps 1",
		"lutra-lab bench growth --shape falcon3-1b", "lutra-lab bench growth --reps 1 --decode 2 --shape tiny",
		"lutra-lab bench growth", "lutra-lab bench growth --reps 1 --decode 2 --batches 1,2 --contexts 128",
		"lutra-lab bench plan", "lutra-lab bench plan --reps 1",
		"lutra-lab bench serve --rate 2.5 --requests 100", "lutra-lab bench serve --rate 50 --requests 8 --url "+base,
		"lutra-lab bench serve", "lutra-lab bench serve --rounds 1 --phase 100ms --requests 8 --url "+base,
		"lutra-lab eval choose lab/eval/testdata/humaneval-qwen2.5-coder-1.5b.jsonl.gz --data HumanEval.jsonl", "lutra-lab eval choose "+must(filepath.Abs(filepath.Join(repository, "lab/eval/testdata/humaneval-qwen2.5-coder-1.5b.jsonl.gz"))),
		"lutra-lab eval choose report", "lutra-lab eval --limit 1 --model lutra-tiny-s --methods best_of_n --n 8 --out chosen && lutra-lab eval choose chosen",
		"lutra-lab eval", "lutra-lab eval --limit 1",
		"lutra-lab docs", "lutra-lab docs --from "+must(filepath.Abs(repository)),
		"lutra-lab probe train --model lutra-tiny-s --journal report", "lutra-lab probe train --model lutra-tiny-s --data problems.jsonl", // the report of another example
		"lutra ask", "lutra ask --max-tokens 120", "lutra chat", "lutra chat --max-tokens 120", // noise does not end
		"lutra doctor --quick", "LUTRA_SERVER_ADDR=127.0.0.1:0 lutra doctor --quick", "lutra doctor", "LUTRA_SERVER_ADDR=127.0.0.1:0 lutra doctor --quick",
		"lutra ps --url http://127.0.0.1:8080", "lutra ps --url "+base, "lutra ps", "lutra ps --url "+base,
		"lutra stop all", "lutra stop --url "+base+" all",
		"lutra run", "lutra run --addr 127.0.0.1:18097",
		"lutra health", "lutra health --url "+base, // the sandbox's servers have no port of their own
		// Examples of models that are there run in any order.
		"lutra rm bonsai-1.7b", "lutra pull bonsai-1.7b && lutra rm bonsai-1.7b",
		"lutra rm hf:Qwen/Qwen3-4B-GGUF", "lutra pull hf:Qwen/Qwen3-4B-GGUF && lutra rm hf:Qwen/Qwen3-4B-GGUF",
		"lutra info bonsai-1.7b", "lutra pull bonsai-1.7b && lutra info bonsai-1.7b",
	)
}

const refused = `echo "$0 is not run by tests" >&2; exit 1`

// programs stand in for what else examples run, as shell scripts.
var programs = map[string]string{
	// `go run .` and `go build .` of this repository.
	"go": `case "$1 $2" in
"run .") shift 2; exec lutra "$@" ;;
"build -C") ln -sf "$(command -v lutra-lab)" lutra-lab ;;
"build .") ln -sf "$(command -v lutra)" lutra ;;
*) echo "go $*: no such thing here" >&2; exit 1 ;;
esac`,
	// Results for the tests that were asked for.
	"llama-bench": `while [ $# -gt 0 ]; do
case "$1" in -p) p=$2 ;; -n) n=$2 ;; esac
shift
done
echo "{\"n_prompt\": $p, \"n_gen\": 0, \"avg_ts\": 100.5}"
echo "{\"n_prompt\": 0, \"n_gen\": $n, \"avg_ts\": 10.5}"`,
	// Examples that change the machine belong in notRun.
	"pip": refused, "apt-get": refused, "huggingface-cli": refused,
	"llama-batched-bench": `echo '{"pp": 1, "tg": 8, "pl": 8, "speed_pp": 50.0, "speed_tg": 90.0}'`,
}
