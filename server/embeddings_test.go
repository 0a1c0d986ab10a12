package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// rerankTemplate resembles Qwen3-Reranker's template.
const rerankTemplate = "<|im_start|>user\nQuery: {query}\nDocument: {document}<|im_end|>\n<|im_start|>assistant\n"

// reading returns a server of a generator, "toy", of a model whose vectors count a text's
// tokens, "vectors", and of one that scores by a document's length, "ranker".
func reading(t *testing.T) *fixture {
	t.Helper()
	s := New(DefaultOptions())
	f := &fixture{Server: s, t: t, model: toyModel(t, &toy.Model{}, "toy", nil)}
	f.engine = f.model.Engine
	vectors := toyModel(t, &toy.Model{Outputs: 4, Pooling: models.PoolingMean, Context: 256, Logits: func(tokens []int32, row []float32) {
		clear(row)
		row[tokens[len(tokens)-1]%4] = 1
	}}, "vectors", nil)
	embedder, err := embed.NewEmbedder(vectors)
	if err != nil {
		t.Fatal(err)
	}
	ranks := toyModel(t, &toy.Model{Outputs: 2, Context: 256, Logits: func(tokens []int32, row []float32) {
		row[0], row[1] = float32(len(tokens))/16, 1
	}}, "ranker", nil)
	ranker, err := embed.NewRanker(ranks, rerankTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(registry.Served{Model: f.model}, registry.Served{Model: vectors, Embed: embedder, Rank: embedder}, registry.Served{Model: ranks, Rank: ranker}); err != nil {
		t.Fatal(err)
	}
	f.others = append(f.others, vectors.Engine, ranks.Engine)
	live := httptest.NewServer(s.Handler())
	f.url = live.URL
	t.Cleanup(func() {
		live.Close()
		f.settle()
	})
	return f
}

// wireVectors is the answer of /v1/embeddings, written down apart from the server's own types.
// readTokens is the usage of all routes here.
type wireVectors struct {
	Object string `json:"object"`
	Data   []struct {
		Object    string          `json:"object"`
		Index     int             `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
	Model string     `json:"model"`
	Usage readTokens `json:"usage"`
}

type readTokens struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// counted returns the vector of "vectors" for these tokens.
func counted(ids []int32, dimensions int) []float32 {
	v := make([]float32, 4)
	for _, id := range ids {
		v[id%4]++
	}
	v = v[:dimensions]
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// near tells whether two vectors are equal but for rounding.
func near(a, b []float32) bool {
	for i := range a {
		if i >= len(b) || math.Abs(float64(a[i]-b[i])) > 1e-6 {
			return false
		}
	}
	return len(a) == len(b)
}

func TestEveryFormOfInputHasItsVector(t *testing.T) {
	f := reading(t)
	ids := func(text string) []int32 { return must(f.model.Encode(t.Context(), &tts.Prompt{Text: text})) }
	hello, world := ids("hello there"), ids("a rather different world")
	for _, c := range []struct {
		input  string
		fields string
		want   [][]int32
		dims   int
	}{
		{`"hello there"`, ``, [][]int32{hello}, 4},
		{`["hello there","a rather different world"]`, `,"user":"me"`, [][]int32{hello, world}, 4},
		{string(must(json.Marshal(hello))), ``, [][]int32{hello}, 4},
		{string(must(json.Marshal([][]int32{world, hello}))), `,"dimensions":3`, [][]int32{world, hello}, 3},
	} {
		for _, format := range []string{"float", "base64"} {
			body := `{"model":"vectors","input":` + c.input + c.fields + `,"encoding_format":"` + format + `"}`
			status, _, answer := f.post("/v1/embeddings", body)
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", body, status, answer)
			}
			r := strict[wireVectors](t, answer)
			tokens := 0
			for i, want := range c.want {
				tokens += len(want)
				var got []float32
				if format == "float" {
					got = must(got, json.Unmarshal(r.Data[i].Embedding, &got))
				} else {
					raw := must(base64.StdEncoding.DecodeString(strings.Trim(string(r.Data[i].Embedding), `"`)))
					for ; len(raw) > 0; raw = raw[4:] {
						got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
					}
				}
				if !near(got, counted(want, c.dims)) || r.Data[i].Index != i || r.Data[i].Object != "embedding" {
					t.Errorf("%s: vector %d is %v, want %v", body, i, got, counted(want, c.dims))
				}
			}
			if r.Object != "list" || r.Model != "vectors" || len(r.Data) != len(c.want) || r.Usage.Prompt != tokens || r.Usage.Total != tokens {
				t.Errorf("%s: %s, want %d tokens", body, answer, tokens)
			}
		}
	}
}

func TestManyTextsHaveTheVectorsThatTheyHaveAlone(t *testing.T) {
	f := reading(t)
	var texts []string
	for i := range 100 {
		texts = append(texts, strings.Repeat(fmt.Sprint("word ", i, " "), 1+i%20))
	}
	all := must(f.client().CreateEmbeddings(t.Context(), goopenai.EmbeddingRequest{Input: texts, Model: "vectors"}))
	for i, text := range texts {
		if i%9 > 0 {
			continue
		}
		alone := must(f.client().CreateEmbeddings(t.Context(), goopenai.EmbeddingRequest{Input: text, Model: "vectors"}))
		for k, x := range alone.Data[0].Embedding {
			if x != all.Data[i].Embedding[k] {
				t.Fatalf("text %d is %v alone and %v among others", i, alone.Data[0].Embedding, all.Data[i].Embedding)
			}
		}
	}
}

func TestEveryBadRequestForVectorsOrScoresIsRefusedWithItsReason(t *testing.T) {
	f := reading(t)
	long := `"` + strings.Repeat("word ", 3000) + `"`
	for _, c := range []struct {
		path, body string
		status     int
		code       string
		param      string
	}{
		{"/v1/embeddings", `{"input":"a","model":"toy"}`, 400, "invalid_value", "model"},
		{"/v1/embeddings", `{"input":"a","model":"ranker"}`, 400, "invalid_value", "model"},
		{"/v1/embeddings", `{"input":"a","model":"nobody"}`, 404, "model_not_found", "model"},
		{"/v1/embeddings", `{}`, 400, "missing_required_parameter", "input"},
		{"/v1/embeddings", `{"input":7}`, 400, "invalid_type", "input"},
		{"/v1/embeddings", `{"input":[]}`, 400, "invalid_value", "input"},
		{"/v1/embeddings", `{"input":["a",7]}`, 400, "invalid_type", "input"},
		{"/v1/embeddings", `{"input":[[1],[]]}`, 400, "invalid_value", "input[1]"},
		{"/v1/embeddings", `{"input":[[1],[99999]]}`, 400, "invalid_value", "input[1][0]"},
		{"/v1/embeddings", `{"input":[0.5]}`, 400, "invalid_type", "input"},
		{"/v1/embeddings", `{"input":""}`, 400, "invalid_value", "input"},
		{"/v1/embeddings", `{"input":["a",""]}`, 400, "invalid_value", "input[1]"},
		{"/v1/embeddings", `{"input":["a",` + long + `]}`, 400, "context_length_exceeded", "input[1]"},
		{"/v1/embeddings", `{"input":[[` + listed("7", 300) + `]]}`, 400, "context_length_exceeded", "input[0]"},
		{"/v1/embeddings", `{"input":"a","dimensions":5}`, 400, "invalid_value", "dimensions"},
		{"/v1/embeddings", `{"input":"a","dimensions":0}`, 400, "invalid_value", "dimensions"},
		{"/v1/embeddings", `{"input":"a","encoding_format":"hex"}`, 400, "invalid_value", "encoding_format"},
		{"/v1/embeddings", `{"input":"a","truncate_prompt_tokens":8}`, 400, "unsupported_parameter", "truncate_prompt_tokens"},
		{"/v1/rerank", `{"documents":["a"]}`, 400, "missing_required_parameter", "query"},
		{"/v1/rerank", `{"query":"a"}`, 400, "missing_required_parameter", "documents"},
		{"/v1/rerank", `{"query":7,"documents":["a"]}`, 400, "invalid_type", "query"},
		{"/v1/rerank", `{"query":"a","documents":[]}`, 400, "invalid_value", "documents"},
		{"/v1/rerank", `{"query":"a","documents":["a",7]}`, 400, "invalid_type", "documents[1]"},
		{"/v1/rerank", `{"query":"a","documents":[{"title":"a"}]}`, 400, "missing_required_parameter", "documents[0].text"},
		{"/v1/rerank", `{"query":"a","documents":["a"],"top_n":0}`, 400, "invalid_value", "top_n"},
		{"/v1/rerank", `{"query":"a","documents":["a"],"rank_fields":["title"]}`, 400, "unsupported_parameter", "rank_fields"},
		{"/v1/rerank", `{"query":"a","documents":["a",` + long + `]}`, 400, "context_length_exceeded", "documents[1]"},
		{"/v1/rerank", `{"model":"vectors","query":"","documents":["a"]}`, 400, "invalid_value", "query"},
		{"/v1/rerank", `{"model":"toy","query":"a","documents":["a"]}`, 400, "invalid_value", "model"},
		{"/v1/score", `{"text_1":"a"}`, 400, "missing_required_parameter", "text_2"},
		{"/v1/score", `{"text_1":["a","b"],"text_2":["a","b","c"]}`, 400, "invalid_value", "text_1"},
		{"/v1/score", `{"text_1":[],"text_2":"a"}`, 400, "invalid_value", "text_1"},
		{"/v1/score", `{"text_1":"a","text_2":true}`, 400, "invalid_type", "text_2"},
		{"/v1/score", `{"model":"vectors","text_1":"a","text_2":["a",""]}`, 400, "invalid_value", "text_2[1]"},
		{"/v1/chat/completions", `{"model":"vectors","messages":[{"role":"user","content":"Hi"}]}`, 400, "invalid_value", "model"},
		{"/v1/completions", `{"model":"ranker","prompt":"Hi"}`, 400, "invalid_value", "model"},
	} {
		status, _, answer := f.post(c.path, c.body)
		wantError(t, c.path+" "+c.body[:min(len(c.body), 80)], status, answer, c.status, c.code, c.param)
	}
}

func TestAnEmptyTextHasNoVectorThoughTheModelReadsTokensOfItsOwn(t *testing.T) {
	f := reading(t)
	m := must(must(f.models.known()).Registry().Embedder(""))
	file := must(embedded.Open(embedded.Default))
	file.Metadata["tokenizer.ggml.add_bos_token"], file.Metadata["tokenizer.ggml.bos_token_id"] = true, uint32(1)
	m.Tokenizer = must(tokenizer.New(file.Metadata))
	if ids := must(m.Encode(t.Context(), &tts.Prompt{})); len(ids) == 0 {
		t.Fatal("the model reads nothing of an empty text")
	}
	for body, param := range map[string]string{
		`{"input":""}`:          "input",
		`{"input":[""]}`:        "input[0]",
		`{"input":["a","",""]}`: "input[1]",
	} {
		status, _, answer := f.post("/v1/embeddings", body)
		wantError(t, body, status, answer, 400, jsonread.CodeValue, param)
	}
}

func TestAServerWithoutReadersSaysSo(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for path, want := range map[string]string{"/v1/embeddings": "no embedding model", "/rerank": "no embedding model", "/v1/score": "no embedding model"} {
		if status, _, answer := f.post(path, `{"input":"a"}`); status != 404 || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %d %s, want 404 and %q", path, status, answer, want)
		}
	}
}

func TestAServerMayHaveReadersAlone(t *testing.T) {
	f := reading(t)
	m, err := must(f.models.known()).Registry().Embedder("")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(registry.Served{Model: m.Model, Embed: m.Embed, Rank: m.Rank}); err != nil {
		t.Fatal(err)
	}
	status, _, answer := f.post("/v1/embeddings", `{"model":"default","input":"a"}`)
	if status != 200 {
		t.Errorf("vectors: %d %s", status, answer)
	}
	status, _, answer = f.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`)
	if wantError(t, "a chat", status, answer, 404, "model_not_found", "model"); !strings.Contains(string(answer), "no model that writes text") {
		t.Errorf("a chat: %s", answer)
	}
	_, _, answer = f.do("GET", "/v1/models", nil)
	if !strings.Contains(string(answer), `"task":"embed"`) {
		t.Errorf("models: %s", answer)
	}
}

func TestOllamaClientsGetVectors(t *testing.T) {
	f := reading(t)
	want := counted(must(f.model.Encode(t.Context(), &tts.Prompt{Text: "hello there"})), 4)
	var r struct {
		Model      string
		Embeddings [][]float32
		Total      int64 `json:"total_duration"`
		Load       int64 `json:"load_duration"`
		Tokens     int   `json:"prompt_eval_count"`
	}
	_, _, answer := f.post("/api/embed", `{"model":"vectors:latest","input":["hello there","hello there"],"keep_alive":"5m"}`)
	if err := json.Unmarshal(answer, &r); err != nil || len(r.Embeddings) != 2 || !near(r.Embeddings[1], want) || r.Model != "vectors" || r.Tokens == 0 || r.Total == 0 {
		t.Errorf("/api/embed: %s, want %v twice", answer, want)
	}
	_, _, answer = f.post("/api/embed", `{"model":"vectors","input":""}`)
	if !strings.Contains(string(answer), `"embeddings":[]`) {
		t.Errorf("loading: %s", answer)
	}
	long := `"` + strings.Repeat("word ", 3000) + `"`
	if status, _, answer := f.post("/api/embed", `{"model":"vectors","input":`+long+`}`); status != 200 {
		t.Errorf("a long text is truncated: %d %s", status, answer)
	}
	if status, _, answer := f.post("/api/embed", `{"model":"vectors","truncate":false,"input":`+long+`}`); status != 400 || !strings.Contains(string(answer), `{"error":"This model's maximum context`) {
		t.Errorf("a long text: %d %s", status, answer)
	}
	if r.Load == 0 || r.Load > r.Total {
		t.Errorf("load_duration is %d of %d", r.Load, r.Total)
	}
	full, few := must(f.model.Encode(t.Context(), &tts.Prompt{Text: "hello there you all"})), 5
	if len(full) <= few {
		t.Fatalf("%d tokens are too few", len(full))
	}
	for _, c := range []struct {
		truncate string
		most     int
		want     []int32 // nil: an error
	}{{"true", few, full[:few]}, {"true", 0, full}, {"true", 1 << 20, full}, {"false", len(full), full}, {"false", len(full) - 1, nil}} {
		body := fmt.Sprintf(`{"model":"vectors","input":["a","hello there you all"],"truncate":%s,"options":{"num_ctx":%d,"temperature":0}}`, c.truncate, c.most)
		status, _, answer := f.post("/api/embed", body)
		if c.want == nil {
			if want := fmt.Sprintf("maximum context length is %d tokens", c.most); status != 400 || !strings.Contains(string(answer), want) || !strings.Contains(string(answer), "input[1]") {
				t.Errorf("%s: %d %s, want an error that says %s", body, status, answer, want)
			}
			continue
		}
		if err := json.Unmarshal(answer, &r); err != nil || !near(r.Embeddings[1], counted(c.want, 4)) {
			t.Errorf("%s: %s, want the vector of %d tokens", body, answer, len(c.want))
		}
	}
	_, _, answer = f.post("/api/embeddings", `{"model":"vectors","prompt":"hello there"}`)
	var old struct{ Embedding []float32 }
	if err := json.Unmarshal(answer, &old); err != nil || !near(old.Embedding, want) {
		t.Errorf("/api/embeddings: %s, want %v", answer, want)
	}
	_, _, answer = f.post("/api/show", `{"model":"vectors"}`)
	if !strings.Contains(string(answer), `"capabilities":["embedding"]`) {
		t.Errorf("/api/show: %s", answer)
	}
}

func TestTextsToReadMakeNoMoreThanTheServerCounts(t *testing.T) {
	sweep.Full(t)
	if raceDetector {
		t.Skip("the race detector allocates, too")
	}
	f := reading(t)
	text := `"` + strings.Repeat("cat ", 100) + `"`
	for _, c := range []struct {
		path, body string
		texts      int64
	}{
		{"/v1/embeddings", `{"model":"vectors","input":[` + listed(text, 2048) + `]}`, 2048},
		{"/v1/embeddings", `{"model":"vectors","input":[` + listed("["+listed("7", 250)+"]", 2048) + `],"encoding_format":"base64"}`, 2048},
		{"/v1/embeddings", `{"model":"vectors","input":"` + strings.Repeat("a", 1<<20) + `"}`, 1},
		{"/v1/embeddings", `{"model":"vectors","input":[` + listed("7", 1<<20) + `]}`, 1},
		{"/v1/rerank", `{"query":"a","documents":[` + listed(text, 2048) + `],"return_documents":true}`, 4096},
		{"/v1/rerank", `{"query":"a","documents":[` + listed(`{"text":`+text+`}`, 2048) + `]}`, 4096},
		{"/v1/score", `{"model":"vectors","text_1":[` + listed(text, 2048) + `],"text_2":[` + listed(text, 2048) + `]}`, 4096},
	} {
		r := httptest.NewRequest("POST", "http://localhost"+c.path, strings.NewReader(c.body))
		w := &nowhere{header: http.Header{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.Handler().ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		const engine = 20 << 20 // of steps and merging, which are not the request's
		made, counted := int64(after.TotalAlloc-before.TotalAlloc), api.EmbeddingFactor*int64(len(c.body))+c.texts*perText
		if made > counted+engine || w.status >= 500 {
			t.Errorf("%s, %.60s: status %d, %d bytes were made of %d, and %d counted", c.path, c.body, w.status, made, len(c.body), counted)
		}
		t.Logf("%s, %.60s: status %d, %d texts, factor %.1f", c.path, c.body, w.status, c.texts, float64(made)/float64(len(c.body)))
	}
	if n := f.admitter.memory.Bytes(); n != 0 {
		t.Errorf("%d bytes are held after the last request", n)
	}
}
