package apiclient

import "testing"

func TestAnAddressWithoutAPathMeansV1(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080/v1",
		"http://127.0.0.1:8080/":       "http://127.0.0.1:8080/v1",
		"https://host/v1/":             "https://host/v1",
		"https://host/proxy/openai/v2": "https://host/proxy/openai/v2",
		"nonsense":                     "nonsense",
	} {
		if got := Base(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
