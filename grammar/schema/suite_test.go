package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheOfficialSuite runs JSON-Schema-Test-Suite where LUTRA_SCHEMA_SUITE names a
// folder of it, such as tests/draft2020-12: a schema is refused, or instances are
// judged as they should be.
func TestTheOfficialSuite(t *testing.T) {
	dir := os.Getenv("LUTRA_SCHEMA_SUITE")
	if dir == "" {
		t.Skip("LUTRA_SCHEMA_SUITE names no folder")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(text, &groups); err != nil {
				t.Fatal(err)
			}
			right, refused := 0, 0
			for _, g := range groups {
				compiled, err := Compile(g.Schema, Options{AnyOrder: true})
				if err != nil {
					refused++
					t.Logf("%s: %v", g.Description, err)
					if strings.Contains(err.Error(), "no value meets it") {
						for _, c := range g.Tests { // then there is none
							if c.Valid {
								t.Errorf("%s: %s is valid", g.Description, c.Description)
							}
						}
					}
					continue
				}
				for _, c := range g.Tests {
					instance := written(t, c.Data)
					s, n, err := compiled.Start().Read(instance)
					switch got := n == len(instance) && s.Accepts(); {
					case err != nil, got && !c.Valid:
						t.Errorf("%s: %s: %.200s is accepted: %v", g.Description, c.Description, instance, err)
						continue
					case !got && c.Valid: // written in a way that models have no need of, or of a format
						t.Logf("%s: %s: %.200s is refused", g.Description, c.Description, instance)
						continue
					}
					right++
				}
			}
			t.Logf("%d instances judged rightly, %d of %d schemas refused", right, refused, len(groups))
		})
	}
}

// written is JSON as the grammars have it.
func written(t *testing.T, raw []byte) []byte {
	t.Helper()
	v, err := read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(v.write(style{comma: " ", colon: " "}))
}
