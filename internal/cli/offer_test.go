package cli

import (
	"encoding/json"
	"net/http"
	"testing"
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
