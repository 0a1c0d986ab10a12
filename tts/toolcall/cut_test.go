package toolcall

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestArgumentsThatAreCutOffAreWhatThereIsOfThem(t *testing.T) {
	for cut, want := range map[string]string{
		"":                                 `{}`,
		`{`:                                `{}`,
		`{"pa`:                             `{}`,
		`{"path"`:                          `{}`,
		`{"path": `:                        `{}`,
		`{"path": "a.go`:                   `{"path": "a.go"}`,
		`{"path": "a.go", "te`:             `{"path": "a.go"}`,
		`{"path": "a.go", "text": "one\`:   `{"path": "a.go", "text": "one"}`,
		`{"path": "a.go", "text": "é\u00e`: `{"path": "a.go", "text": "é"}`,
		`{"text": "a\ud83e\udda`:           `{"text": "a\ufffd"}`,
		"{\"text\": \"a\xc3":               `{"text": "a"}`,
		`{"text": "{[,\"`:                  `{"text": "{[,\""}`,
		`{"n": 12`:                         `{}`,
		`{"n": 12, "m": 3`:                 `{"n": 12}`,
		`{"n": tru`:                        `{}`,
		`{"list": ["a", "b`:                `{"list": ["a", "b"]}`,
		`{"list": [{"a": 1}, {"b": "x"`:    `{"list": [{"a": 1}, {"b": "x"}]}`,
		`{"list": [1, 2`:                   `{"list": [1]}`,
		`{"a": "x"}`:                       `{"a": "x"}`,
		`no object`:                        `{}`,
		`]]]{"a": "x`:                      `{}`,
	} {
		var got, like any
		said := (&Call{Arguments: cut}).Object()
		if err := json.Unmarshal(said, &got); err != nil {
			t.Errorf("%q becomes %q: %v", cut, said, err)
		}
		if err := json.Unmarshal([]byte(want), &like); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, like) {
			t.Errorf("%q becomes %s, want %s", cut, said, want)
		}
	}
	whole := `{"path": "a\n\u00e9.go", "list": [{"a": -1.5e3}, null, "é{"], "deep": {"x": {"y": "z\\"}}}`
	for n := range len(whole) {
		if said := (&Call{Arguments: whole[:n]}).Object(); !json.Valid(said) || said[0] != '{' {
			t.Errorf("%q becomes %q", whole[:n], said)
		}
	}
}
