package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/server"
)

func TestEmbeddedModelsAreOfferedAsADemonstration(t *testing.T) {
	resp, err := http.Get(serveModel(t, "lutra-tiny-s") + "/v1/models/lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var card struct {
		Lutra struct{ Demo bool }
	}
	if err := json.NewDecoder(resp.Body).Decode(&card); err != nil || !card.Lutra.Demo {
		t.Errorf("the card of an embedded model is %+v, %v", card, err)
	}
}

// serveModel serves an embedded model until the test ends and returns the URL.
func serveModel(t *testing.T, name string) string {
	t.Helper()
	cfg := config.Default()
	cfg.Models = []config.Model{{Embedded: name}}
	r, err := engines.New(t.Context(), cfg, zerolog.Nop(), engines.Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(cfg.Server)
	if err := srv.Publish(servedModels(r)...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	live := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		live.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Close()
	})
	return live.URL
}
