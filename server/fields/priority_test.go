package fields

import (
	"net/http"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

func TestARequestWithAPriorityGivesWayOrIsRefused(t *testing.T) {
	for body, want := range map[string]struct{ background, refused bool }{
		`{}`: {}, `{"priority":0}`: {}, `{"priority":null}`: {},
		`{"priority":3}`:   {background: true},
		`{"priority":-1}`:  {refused: true},
		`{"priority":"a"}`: {refused: true},
	} {
		f, err := jsonread.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("POST", "/", nil)
		c := &api.Call{Request: r, Server: &api.Server{}, Body: f}
		if err := Finish(c); (err != nil) != want.refused || batcher.InBackground(c.Context()) != want.background {
			t.Errorf("%s: %v, in background %v", body, err, batcher.InBackground(c.Context()))
		}
	}
}
