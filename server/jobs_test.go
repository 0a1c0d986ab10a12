package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// jobServer serves a model that says "four", with a folder for jobs.
func jobServer(t *testing.T, tune func(*Options)) *fixture {
	t.Helper()
	f := start(t, says(t, "four"), func(o *Options) {
		o.Jobs.Path = t.TempDir()
		if tune != nil {
			tune(o)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.jobs.Run(ctx, f.handler)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// try asks with a key, and returns the answer's body.
func (f *fixture) try(key, method, path, media, body string) (status int, text string) {
	f.t.Helper()
	req, err := http.NewRequest(method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// object asks and returns the fields of a good answer. While the folder is being opened it asks again.
func (f *fixture) object(key, method, path, media, body string) map[string]any {
	f.t.Helper()
	status, text := f.try(key, method, path, media, body)
	for status == http.StatusServiceUnavailable {
		status, text = f.try(key, method, path, media, body)
	}
	if status != http.StatusOK {
		f.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		f.t.Fatal(err)
	}
	return o
}

// form is a body of POST /v1/files.
func form(t testing.TB, purpose, text string) (media, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", purpose)
	part, err := w.CreateFormFile("file", "in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// upload sends a file of lines and returns its id.
func (f *fixture) upload(key, text string) string {
	media, body := form(f.t, "batch", text)
	return f.object(key, "POST", "/v1/files", media, body)["id"].(string)
}

// batch has a file's lines answered, and returns the batch that has ended.
func (f *fixture) batch(key, endpoint, text string) map[string]any {
	f.t.Helper()
	b := f.object(key, "POST", "/v1/batches", "application/json",
		fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h","metadata":{"night":"1"}}`, f.upload(key, text), endpoint))
	for b["status"] == "in_progress" || b["status"] == "finalizing" {
		b = f.object(key, "GET", "/v1/batches/"+b["id"].(string), "", "")
	}
	return b
}

func jobLine(id, url, body string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":%q,"body":%s}`+"\n", id, url, body)
}

func TestLinesOfABatchAreAnsweredAsRequestsOfTheirRoutes(t *testing.T) {
	f := jobServer(t, nil)
	for endpoint, c := range map[string]struct{ body, want, bad string }{
		"/v1/chat/completions": {`{"model":"toy","messages":[{"role":"user","content":"hi"}]}`, `"content":"four"`, `{"messages":[{"role":"user","content":"hi"}],"receipt":true}`},
		"/v1/completions":      {`{"model":"toy","prompt":"hi","max_tokens":3}`, `"text":"`, `{"model":"nobody","prompt":"hi"}`},
		"/v1/responses":        {`{"model":"toy","input":"hi"}`, `"text":"four"`, `{"input":{}}`},
	} {
		b := f.batch("", endpoint, jobLine("good", endpoint, c.body)+"\n"+jobLine("bad", endpoint, c.bad))
		counts := b["request_counts"].(map[string]any)
		if b["status"] != "completed" || counts["completed"] != 1.0 || counts["failed"] != 1.0 || b["metadata"].(map[string]any)["night"] != "1" {
			_, why := f.try("", "GET", "/v1/files/"+b["error_file_id"].(string)+"/content", "", "")
			t.Fatalf("%s: the batch is %v with %s", endpoint, b, why)
		}
		for field, want := range map[string][]string{"output_file_id": {`"custom_id":"good"`, `"status_code":200`, c.want}, "error_file_id": {`"custom_id":"bad"`, `"status_code":4`, `"error":{"message":`}} {
			_, text := f.try("", "GET", "/v1/files/"+b[field].(string)+"/content", "", "")
			for _, w := range want {
				if !strings.Contains(text, w) || strings.Count(text, "\n") != 1 {
					t.Errorf("%s: the %s is %s, want %s", endpoint, field, text, w)
				}
			}
		}
	}
	if _, text := f.try("", "GET", "/metrics", "", ""); !strings.Contains(text, `lutra_jobs_batches{status="completed"} 3`) || !strings.Contains(text, `lutra_jobs_lines_total{outcome="succeeded"} 3`) {
		t.Error("the metrics do not count the batches")
	}
}

func TestRequestsOfAMessageBatchAreAnsweredAsMessages(t *testing.T) {
	f := jobServer(t, nil)
	good := `{"model":"toy","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	b := f.object("", "POST", "/v1/messages/batches", "application/json",
		`{"requests":[{"custom_id":"a","params":`+good+`},{"custom_id":"b","params":{"model":"toy"}}]}`)
	path := "/v1/messages/batches/" + b["id"].(string)
	for b["processing_status"] != "ended" {
		b = f.object("", "GET", path, "", "")
	}
	if counts := b["request_counts"].(map[string]any); counts["succeeded"] != 1.0 || counts["errored"] != 1.0 || b["results_url"] != f.url+path+"/results" {
		t.Fatalf("the batch is %v", b)
	}
	_, text := f.try("", "GET", path+"/results", "", "")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"custom_id":"a","result":{"type":"succeeded","message":{`) || !strings.Contains(lines[0], `"text":"four"`) ||
		!strings.HasPrefix(lines[1], `{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error"`) {
		t.Errorf("the results are %s", text)
	}
	if list := f.object("", "GET", "/v1/messages/batches?limit=1", "", ""); len(list["data"].([]any)) != 1 || list["has_more"] != false {
		t.Errorf("the list is %v", list)
	}
	if list := f.object("", "GET", "/v1/files", "", ""); len(list["data"].([]any)) != 0 {
		t.Errorf("files of message batches are listed: %v", list)
	}
	if gone := f.object("", "DELETE", path, "", ""); gone["type"] != "message_batch_deleted" {
		t.Errorf("deleted: %v", gone)
	}
	if status, text := f.try("", "GET", path+"/results", "", ""); status != http.StatusNotFound || !strings.Contains(text, `"type":"not_found_error"`) {
		t.Errorf("of one that is gone: %d %s", status, text)
	}
}

func TestKeysSeeTheirOwnFilesAndBatchesAlone(t *testing.T) {
	f := jobServer(t, func(o *Options) { o.APIKeys = []string{"sk-a", "sk-b"} })
	b := f.batch("sk-a", "/v1/completions", jobLine("1", "/v1/completions", `{"prompt":"hi","max_tokens":2}`))
	file := b["output_file_id"].(string)
	for _, path := range []string{"/v1/batches/" + b["id"].(string), "/v1/files/" + file, "/v1/files/" + file + "/content"} {
		if status, _ := f.try("sk-a", "GET", path, "", ""); status != http.StatusOK {
			t.Errorf("%s with its key: %d", path, status)
		}
		if status, _ := f.try("sk-b", "GET", path, "", ""); status != http.StatusNotFound {
			t.Errorf("%s with another key: %d", path, status)
		}
	}
	for _, path := range []string{"/v1/batches", "/v1/files"} {
		if list := f.object("sk-b", "GET", path, "", ""); len(list["data"].([]any)) != 0 {
			t.Errorf("%s with another key: %v", path, list)
		}
	}
	f.admitter.keys.Replace(nil)
	if status, _ := f.try("sk-a", "GET", "/v1/files", "", ""); status != http.StatusUnauthorized {
		t.Errorf("a key that is gone: %d", status)
	}
}

func TestFilesAndBatchesThatAreWrongAreRefused(t *testing.T) {
	f := jobServer(t, func(o *Options) { o.Jobs.Lines, o.Jobs.File = 3, "4KiB" })
	id := f.upload("", jobLine("1", "/v1/completions", `{}`))
	for _, c := range []struct{ purpose, text, want string }{
		{"assistants", "x", "'batch' alone"},
		{"batch", strings.Repeat("x", 5000), "request_too_large"},
	} {
		media, body := form(t, c.purpose, c.text)
		if status, text := f.try("", "POST", "/v1/files", media, body); status < 400 || !strings.Contains(text, c.want) {
			t.Errorf("a file %s: %d %s, want %s", c.purpose, status, text, c.want)
		}
	}
	for body, want := range map[string]string{
		`{}`: "input_file_id",
		`{"input_file_id":"file-x","endpoint":"/v1/completions","completion_window":"24h"}`:                                          "there is no file",
		`{"input_file_id":"` + id + `","endpoint":"/v1/images","completion_window":"24h"}`:                                           "endpoint",
		`{"input_file_id":"` + id + `","endpoint":"/v1/completions","completion_window":"99d"}`:                                      "completion_window",
		`{"input_file_id":"` + id + `","endpoint":"/v1/completions","completion_window":"24h","metadata":{"a":3}}`:                   "metadata.a",
		`{"input_file_id":"` + id + `","endpoint":"/v1/completions","completion_window":"24h","output_expires_after":{"seconds":1}}`: "output_expires_after",
	} {
		if status, text := f.try("", "POST", "/v1/batches", "application/json", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", body, status, text, want)
		}
	}
	for text, want := range map[string]string{
		"":                                   "empty_file",
		"{\n":                                "invalid_json_line",
		"[1]\n":                              "invalid_type",
		jobLine("1", "/v1/embeddings", "{}"): "mismatched_url",
		jobLine("", "/v1/completions", "{}"): "missing_required_parameter",
		jobLine("1", "/v1/completions", `{"stream":true}`):                           "unsupported_parameter",
		strings.Repeat(jobLine("1", "/v1/completions", "{}"), 2):                     "duplicate_custom_id",
		jobLine("1", "/v1/completions", "{}") + jobLine("2", "/v1/completions", "3"): "invalid_type",
		jobLine("1", "/v1/completions", "{}") + strings.Repeat("{}\n", 9):            "too_many_requests",
	} {
		b := f.batch("", "/v1/completions", text)
		errors, _ := b["errors"].(map[string]any)
		if b["status"] != "failed" || errors == nil || !strings.Contains(fmt.Sprint(errors["data"]), want) {
			t.Errorf("%q: %v, want %s", text, b, want)
		}
	}
	off := start(t, says(t, "four"), nil)
	if status, text := off.try("", "GET", "/v1/batches", "", ""); status != http.StatusNotFound || !strings.Contains(text, "jobs_off") {
		t.Errorf("without a folder: %d %s", status, text)
	}
	req, _ := http.NewRequest("POST", f.url+"/v1/files", strings.NewReader("x"))
	req.Header.Set("Origin", f.url)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a form of a page without a key: %d", resp.StatusCode)
	}
}

func TestACancelledBatchLeavesTheEngineClean(t *testing.T) {
	f := jobServer(t, func(o *Options) { o.Jobs.AtOnce = 2 }) // which checks that
	b := f.object("", "POST", "/v1/batches", "application/json", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"1h"}`,
		f.upload("", jobLine("1", "/v1/completions", `{"prompt":"hi","max_tokens":100000,"ignore_eos":true}`)+jobLine("2", "/v1/completions", `{"prompt":"ho","max_tokens":100000,"ignore_eos":true}`))))
	path := "/v1/batches/" + b["id"].(string)
	for f.engine.Stats().Running < 2 {
		runtime.Gosched()
	}
	b = f.object("", "POST", path+"/cancel", "", "")
	for b["status"] == "cancelling" {
		b = f.object("", "GET", path, "", "")
	}
	if counts := b["request_counts"].(map[string]any); b["status"] != "cancelled" || counts["failed"] != 2.0 || b["error_file_id"] == nil {
		t.Errorf("the batch is %v", b)
	}
}
