package cli

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
)

// readingModel is a file of an encoder.
const readingModel = "../../tts/embed/testdata/bert.gguf"

func TestCommandsThatWantTextRefuseModelsThatWriteNone(t *testing.T) {
	for _, args := range [][]string{
		{"ask", "--model", readingModel, "Hi"},
	} {
		if _, err := lutra(t, args...); err == nil || !strings.Contains(err.Error(), "writes no text") {
			t.Errorf("lutra %s: error %v", args[0], err)
		}
	}
}

func TestAServerOfAnEncoderMakesVectors(t *testing.T) {
	s := serving(t, "--model", readingModel)
	resp, err := http.Post(s.base+"/v1/embeddings", "application/json", strings.NewReader(`{"input":["the cat","the dog"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || strings.Count(string(answer), `"object":"embedding"`) != 2 {
		t.Errorf("%d %s, %v", resp.StatusCode, answer, err)
	}
}

func TestAnEncoderOnTheDeviceMakesTheCPUsVectors(t *testing.T) {
	var vectors [2][]float64
	for i, backend := range []string{"cpu", "hexagon-go"} {
		s := serving(t, "--addr", "127.0.0.1:0", "--model", "../../tts/embed/testdata/reference/nomic-bert.gguf", "--backend", backend)
		resp, err := http.Post(s.base+"/v1/embeddings", "application/json", strings.NewReader(`{"input":"it is about 12 miles to the sea"}`))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Data []struct{ Embedding []float64 }
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Data) != 1 {
			t.Fatalf("%s answers %v, %v", backend, answer, err)
		}
		resp.Body.Close()
		vectors[i] = answer.Data[0].Embedding
		if backend != "cpu" {
			if n := scrape(t, s.base+"/metrics", `lutra_device_lanes_total{model_name="nomic-bert",path="attention"}`); n <= 0 {
				t.Error("the device attends to nothing")
			}
		}
	}
	for k, x := range vectors[0] {
		if d := math.Abs(x - vectors[1][k]); !(d <= 2e-3) {
			t.Errorf("number %d is %v, on the device %v", k, x, vectors[1][k])
		}
	}
}

func TestAServerOfARerankerRanksAndMakesNoVectors(t *testing.T) {
	const folder = "../../tts/embed/testdata/reference/"
	s := serving(t, "--model", folder+"bert.gguf", "--lora", "law="+folder+"lora/bert")
	for _, c := range []struct {
		path, body, want string
		code             int
	}{
		{"/v1/rerank", `{"query":"how far is the sea?","documents":["it is about 12 miles","the otter plays in the evening"]}`, `"results":[{"index":0,"relevance_score":0.90`, http.StatusOK},
		{"/v1/score", `{"text_1":"x","text_2":"y"}`, `"score":0.9346`, http.StatusOK},
		{"/v1/score", `{"model":"bert:law","text_1":"x","text_2":"y"}`, `"score":0.938`, http.StatusOK},
		{"/v1/score", `{"model":"bert","text_1":"x","text_2":"y","lora":[{"id":0,"scale":1}]}`, `"score":0.938`, http.StatusOK},
		{"/v1/score", `{"model":"bert","text_1":"x","text_2":"y","lora":[{"id":1,"scale":1}]}`, `the model has 1 adapters`, http.StatusBadRequest},
		{"/v1/embeddings", `{"model":"bert","input":"x"}`, "makes no vectors: it ranks documents", http.StatusBadRequest},
		{"/v1/chat/completions", `{"model":"bert","messages":[{"role":"user","content":"x"}]}`, "writes no text", http.StatusBadRequest},
	} {
		resp, err := http.Post(s.base+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.code || !strings.Contains(string(answer), c.want) {
			t.Errorf("%s: %d %s, %v, want %d with %s", c.path, resp.StatusCode, answer, err, c.code, c.want)
		}
	}
}
