package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/verify"
)

// check makes the check of v.
func check(t *testing.T, v scaling.Verify) Check {
	t.Helper()
	final, err := answer.Rule{}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(t.Context(), &v, final)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judge returns what c makes of a text.
func judge(t *testing.T, c Check, text string) Verdict {
	t.Helper()
	v, err := c.Check(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheBlocksOfCodeInAnAnswerAreTested(t *testing.T) {
	c := check(t, scaling.Verify{Language: "javascript", Tests: []string{"f(2) === 4", "f(3) === 6"}})
	for text, want := range map[string]Verdict{
		"First:\n```js\nlet f = x => 0\n```\nBetter:\n```js\nlet f = x => x * 2\n```\nDone.":            {1, "2 of 2 tests passed"},
		"```js\nconst two = 2\n```\nand\n```javascript\nlet f = x => x * two\n```\nprints\n```\n4\n```": {1, "2 of 2 tests passed"},
		"```js\nlet f = x => x + 2": {0.5, "1 of 2 tests passed; test 2: it is false"},
		"let f = x => x * 2":        {1, "2 of 2 tests passed"},
		"I do not know.":            {0, "0 of 2 tests passed; the code: SyntaxError: expecting ';'"},
	} {
		if v := judge(t, c, text); v != want {
			t.Errorf("%q: %v, want %v", text, v, want)
		}
	}
}

func TestEquationsAreComputedAgain(t *testing.T) {
	c := check(t, scaling.Verify{Arithmetic: true})
	for text, want := range map[string]Verdict{
		"3*12=36.\nNow she has 75+36 = 111.":         {1, "2 of 2 equations hold"},
		"3 x 12 = 36, so 36+75=112":                  {0.5, "1 of 2 equations hold; 36+75 is not 112"},
		"2*3 = 3+3 = 7":                              {0.5, "1 of 2 equations hold; 3+3 is not 7"},
		"1,200 × 3 = $3,600 and 100/3 = 33.33":       {1, "2 of 2 equations hold"},
		"100 / 3 = 33.3; 1/8 = 12.5%":                {1, "2 of 2 equations hold"},
		"100 / 3 = 33.4":                             {0, "0 of 1 equations hold; 100 / 3 is not 33.4"},
		"x + 3 = 5, so x = 2 and 5 apples = 8 pears": {0.5, "no equations"},
		"Answer: 7":                                  {0.5, "no equations"},
		strings.Repeat("(", 5000) + "1+1=2":          {0.5, "no equations"},
	} {
		if v := judge(t, c, text); v != want {
			t.Errorf("%.60q: %v, want %v", text, v, want)
		}
	}
}

func TestThePatternMatchesTheFinalAnswer(t *testing.T) {
	c := check(t, scaling.Verify{Pattern: `^\d{2}$`})
	for text, want := range map[string]float32{"12 and 3. Answer: 84": 1, "Answer: 840": 0, "none": 0} {
		if v := judge(t, c, text); v.Score != want {
			t.Errorf("%q: %v, want %v", text, v, want)
		}
	}
}

func TestTheSchemaIsHeldAgainstTheAnswersJSON(t *testing.T) {
	c := check(t, scaling.Verify{Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`)})
	for text, want := range map[string]Verdict{
		` {"n": 3} `:                       {1, "it matches the schema"},
		"It is:\n```json\n{\"n\": 3}\n```": {1, "it matches the schema"},
		`{"n": 0}`:                         {0, "/n: 0 does not meet minimum 1"},
		`{}`:                               {0, `/: it has no property "n"`},
		`{"n": 1, "m": 1}`:                 {0, "/m: it is not allowed"},
		`{"n": 7.1e999990}`:                {0, "the number 7.1e999990 is out of range"},
		`{"n": 1} and more`:                {0, "no JSON"},
	} {
		if v := judge(t, c, text); v != want {
			t.Errorf("%q: %v, want %v", text, v, want)
		}
	}
}

func TestASchemaThatWouldTakeForeverDoesNot(t *testing.T) {
	var defs strings.Builder
	for i := range 40 { // 2^40 ways through
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	c := check(t, scaling.Verify{Schema: []byte(`{"$ref":"#/$defs/a0","$defs":{` + defs.String() + `"a40":{"type":"integer"}}}`)})
	if v := judge(t, c, "1"); v != (Verdict{0, "it is too complex: to hold an answer to it takes more than 2097152 steps"}) {
		t.Errorf("%v", v)
	}
}

func TestASchemaThatIsTooMuchIsRefusedByName(t *testing.T) {
	many := func(n int, schema string) []byte {
		return []byte(`{"allOf":[` + strings.Repeat(schema+",", n-1) + schema + `]}`)
	}
	for want, text := range map[string][]byte{
		"too complex":  many(2200, `{"pattern":"^\\p{L}{900}$"}`),
		"out of range": many(1000, `{"maximum":7.1e999990}`),
	} {
		_, err := New(t.Context(), &scaling.Verify{Schema: text}, nil)
		if fault := (*scaling.Error)(nil); !errors.As(err, &fault) || fault.Field != "verify.json_schema" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s…: %v, want a fault of the schema with %q", text, err, want)
		}
	}
}

func TestAChainOfEquationsIsBounded(t *testing.T) {
	c := check(t, scaling.Verify{Arithmetic: true})
	if v := judge(t, c, strings.Repeat("3+3=", 30_000)+"6"); v != (Verdict{1, "256 of 256 equations hold"}) {
		t.Errorf("%v, want no more than 256 to be computed", v)
	}
}

func TestAChecksContextEndsIt(t *testing.T) {
	final, err := answer.Rule{Extract: "line"}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Load(t.Context(), "javascript"); err != nil {
		t.Fatal(err)
	}
	for text, v := range map[string]scaling.Verify{
		strings.Repeat("1", 5000):               {Pattern: "(1{2}){200}x"},
		strings.Repeat("3+3=", 300):             {Arithmetic: true},
		"[" + strings.Repeat("1,", 5000) + "1]": {Schema: []byte(`{"items":{"type":"integer"}}`)},
		"for (;;);":                             {Language: "javascript", Tests: []string{"true"}},
	} {
		c, err := New(t.Context(), &v, final)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		left := errors.New("left")
		cancel(left)
		if _, err := Checked(c).Check(ctx, text); err != left {
			t.Errorf("%+v: %v, want the context's end", v, err)
		}
	}
}

func TestACheckThatCannotGoOnForOthersWorkIsNoVerdict(t *testing.T) {
	defer func(was func(context.Context) error) { SetPause(was) }(SetPause(func(context.Context) error { return nil }))
	list := "[" + strings.Repeat("1,", 5000) + "1]"
	c := check(t, scaling.Verify{Schema: []byte(`{"items":{"type":"integer"}}`)})
	SetPause(func(context.Context) error { return cpulimit.ErrBusy })
	if v, err := c.Check(t.Context(), list); !errors.Is(err, cpulimit.ErrBusy) {
		t.Errorf("an answer: %v, %v", v, err)
	}
	if _, err := New(t.Context(), &scaling.Verify{Schema: []byte(`{"enum":` + list + `}`)}, nil); !errors.Is(err, cpulimit.ErrBusy) {
		t.Errorf("a schema: %v", err)
	}
}

func TestWhatCannotBeUsedIsRefusedByName(t *testing.T) {
	for want, v := range map[string]scaling.Verify{
		"verify.language":    {Language: "cobol", Tests: []string{"1"}},
		"verify.pattern":     {Pattern: "("},
		"verify.json_schema": {Schema: []byte(`{"type": 7}`)},
	} {
		_, err := New(t.Context(), &v, nil)
		if fault := (*scaling.Error)(nil); !errors.As(err, &fault) || fault.Field != want {
			t.Errorf("%+v: %v, want a fault of %s", v, err, want)
		}
	}
	for _, ref := range []string{"file:///etc/passwd", "http://localhost/x", "other.json"} {
		v := scaling.Verify{Schema: []byte(`{"$ref": "` + ref + `"}`)}
		if _, err := New(t.Context(), &v, nil); err == nil || !strings.Contains(err.Error(), "others are not fetched") {
			t.Errorf("%s: %v, want it not to be loaded", ref, err)
		}
	}
}

// service starts a service that answers with f, and returns its check.
func service(t *testing.T, f http.HandlerFunc) Check {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return NewWebhook(WebhookOptions{Name: "judge", URL: s.URL, Key: "secret", Timeout: 5 * time.Minute}).About(Question{Model: "m", Prompt: "2+2?"})
}

func TestAWebhookJudgesCandidatesTogether(t *testing.T) {
	const candidates = 100
	var posts atomic.Int64
	var come sync.WaitGroup
	come.Add(candidates)
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		come.Wait() // while the first are judged, the others gather
		if r.Header.Get("Authorization") != "Bearer secret" || !strings.HasPrefix(text, `{"model":"m","prompt":"2+2?","candidates":[{"text":"`) {
			t.Errorf("posted: %s", text)
		}
		scores := make([]string, strings.Count(text, `"text"`))
		for i := range scores {
			scores[i] = "0.25"
		}
		fmt.Fprintf(w, `{"scores":[%s],"verdicts":["well"]}`, strings.Join(scores, ","))
	})
	var all sync.WaitGroup
	for range candidates {
		all.Go(func() {
			come.Done()
			if v, err := c.Check(t.Context(), "4"); err != nil || v.Score != 0.25 {
				t.Errorf("Check = %v, %v", v, err)
			}
		})
	}
	all.Wait()
	if n := posts.Load(); n < 2 || n > 50 {
		t.Errorf("100 candidates were posted in %d posts of at most 64", n)
	}
}

func TestAWebhookThatAnswersWronglyIsAnError(t *testing.T) {
	for answer, want := range map[string]string{
		`{"scores":[]}`:                      "0 scores",
		`{"scores":[2]}`:                     "scores[0]",
		`{"scores":[null]}`:                  "scores[0]",
		`{"scores":[1],"verdicts":["",""]}`:  "2 verdicts",
		`<html>`:                             "cannot be read",
		`{"scores":["1"]}`:                   "cannot be read",
		strings.Repeat(" ", 1<<20) + `{"s":`: "longer than",
	} {
		c := service(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		_, err := c.Check(t.Context(), "4")
		if fault := (*ServiceError)(nil); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want an error with %q", answer, err, want)
		}
	}
}

func TestAWebhookIsAskedASecondTimeAfterA5xxAlone(t *testing.T) {
	for status, want := range map[int]int64{500: 2, 503: 2, 400: 1, 302: 1} {
		var posts atomic.Int64
		c := service(t, func(w http.ResponseWriter, _ *http.Request) {
			posts.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		if _, err := c.Check(t.Context(), "4"); err == nil || posts.Load() != want {
			t.Errorf("status %d: %d posts and %v, want %d", status, posts.Load(), err, want)
		}
	}
}

func TestAWebhookThatHangsIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	hook := NewWebhook(WebhookOptions{Name: "judge", URL: s.URL, Timeout: 20 * time.Millisecond})
	if _, err := hook.About(Question{}).Check(t.Context(), "4"); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("%v, want the timeout", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hook = NewWebhook(WebhookOptions{Name: "judge", URL: s.URL})
	if _, err := hook.About(Question{}).Check(ctx, "4"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
}
