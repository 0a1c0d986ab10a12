package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// wallClock lists the files of the serving layers that use the time of day, and for what. All else
// measures and waits by Go's monotonic clock, so that a step of the machine's clock, forward or back, ends
// nothing and keeps nothing waiting.
var wallClock = map[string]string{
	"server/jobs/clock.go":         "when files and batches were made, and when they expire: they outlive the process",
	"server/metrics/engines.go":    "the value of lutra_lora_requests_info, which is the time",
	"server/registry/new.go":       "created of a model",
	"server/requests.go":           "when a request arrived, for /debug/requests",
	"server/responses/wire.go":     "created_at of a response",
	"server/openai/wire.go":        "created of an answer",
	"server/anthropic/failure.go":  "when a limit is reset",
	"server/anthropic/protocol.go": "created_at of a model",
	"server/ollama/encode.go":      "created_at of an answer",
	"server/ollama/models.go":      "expires_at of a model in memory",
	"server/ollama/protocol.go":    "modified_at of a model",
	"server/usage.go":              "since when tokens are counted",
	"internal/kvevents/encode.go":  "the time of a batch of events",
	"server/vllm/scores.go":        "created of an answer",
}

func TestOnlyWhatIsShownUsesTheTimeOfDay(t *testing.T) {
	strips := regexp.MustCompile(`\.Unix(Milli|Micro|Nano)?\(\)|\.Round\(0\)|time\.Unix(Milli)?\(|\.UTC\(\)`)
	seen := 0
	for _, layer := range []string{"server", "tts", "batcher", "models/kv", "internal/workers", "internal/kvevents", "kernels/pool"} {
		err := fs.WalkDir(os.DirFS(layer), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(layer + "/" + name)
			if found := strips.Find(text); found != nil {
				seen++
				if wallClock[layer+"/"+name] == "" {
					t.Errorf("%s/%s has %s: durations are of the monotonic clock; if it shows a time, list it", layer, name, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != len(wallClock) {
		t.Errorf("%d files use the time of day, %d are listed", seen, len(wallClock))
	}
}
