package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/output"
)

// NewLogger logs to w: for people on a terminal, as JSON lines elsewhere; and to others, as JSON.
// The configuration must be valid.
func NewLogger(c config.Log, w io.Writer, others ...io.Writer) zerolog.Logger {
	level, _ := zerolog.ParseLevel(c.Level)
	if c.Format == "console" || c.Format == "auto" && output.IsTerminal(w) {
		w = newConsole(w)
	}
	return zerolog.New(zerolog.MultiLevelWriter(append([]io.Writer{w}, others...)...)).Level(level).With().Timestamp().Logger()
}

// newConsole writes lines of JSON as people read them.
func newConsole(w io.Writer) io.Writer {
	return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, FormatPrepare: readable, NoColor: !output.Styled(w)}
}

// event is a log line as its JSON decodes.
type event map[string]any

// readable turns the most frequent events into sentences. Other events keep their
// fields, as all do in JSON.
func readable(fields map[string]any) error {
	e := event(fields)
	says := map[string]func(event) string{
		"request": requestLine, "loading": loadingLine, "model loaded": loadedLine, "serving": servingLine,
	}[e.text(zerolog.MessageFieldName)]
	switch try := e.text("try"); {
	case try != "":
		e[zerolog.MessageFieldName] = e.text(zerolog.MessageFieldName) + "; try\n  " + try
		delete(e, "try")
		return nil
	case says == nil:
		return nil
	}
	line := says(e)
	for key := range e {
		if key != zerolog.TimestampFieldName && key != zerolog.LevelFieldName {
			delete(e, key)
		}
	}
	e[zerolog.MessageFieldName] = output.OneLine(line)
	return nil
}

// endpoints are the short names of paths.
var endpoints = map[string]string{"/v1/chat/completions": "chat", "/v1/completions": "completion", "/v1/rewards": "rewards"}

// requestLine returns "chat lutra-tiny-l 200 59+80 tokens ttft 9ms 3.1ms/token stop 210ms".
func requestLine(e event) string {
	what := endpoints[e.text("path")]
	if what == "" {
		what = e.text("method") + " " + e.text("path")
	}
	words := []string{what, e.text("model"), e.text("status")}
	if strategy := e.text("strategy"); strategy != "single" {
		words = append(words, strategy)
	}
	if e.text("model") != "" {
		tokens := fmt.Sprintf("%s+%s tokens", cmp.Or(e.text("prompt_tokens"), "0"), cmp.Or(e.text("completion_tokens"), "0"))
		if cached := e.text("cached_tokens"); cached != "" && cached != "0" {
			tokens += " (" + cached + " cached)"
		}
		words = append(words, tokens)
	}
	if t, ok := e.milliseconds("ttft_ms"); ok {
		words = append(words, "ttft "+t)
	}
	if t, ok := e.milliseconds("tpot_ms"); ok && e.text("tpot_ms") != "0" {
		words = append(words, t+"/token")
	}
	words = append(words, e.text("finish"))
	if t, ok := e.milliseconds("duration_ms"); ok {
		words = append(words, t)
	}
	if key := e.text("key"); key != "" {
		words = append(words, "key "+key)
	}
	line := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	if err := e.text("error"); err != "" {
		line += ": " + errtext.WithoutPackage(err)
	}
	if e.text("status") == fmt.Sprint(http.StatusInternalServerError) {
		line += " (id " + e.text("id") + ")"
	}
	return line
}

// loadingLine returns "big: loading big.gguf (1.2 GiB)", then "big: 42 % loaded".
func loadingLine(e event) string {
	if percent := e.text("percent"); percent != "" {
		return e.text("model") + ": " + percent + " % loaded"
	}
	return fmt.Sprintf("%s: loading %s (%s)", e.text("model"), e.text("path"), e.text("size"))
}

func loadedLine(e event) string {
	took, _ := e.milliseconds("took_ms")
	return fmt.Sprintf("%s: %s, %s of weights, context %s, %s threads, %s kernels, loaded in %s",
		e.text("model"), e.text("arch"), e.text("weights"), e.text("context"), e.text("threads"), e.text("kernels"), took)
}

func servingLine(e event) string { return "listening on " + e.text("addr") }

// text returns a field as text; empty: there is none.
func (e event) text(field string) string {
	switch v := e[field].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}

// milliseconds returns a duration with two or three significant digits.
func (e event) milliseconds(field string) (string, bool) {
	n, ok := e[field].(json.Number)
	if !ok {
		return "", false
	}
	ms, err := n.Float64()
	switch {
	case err != nil:
		return "", false
	case ms >= 10_000:
		return fmt.Sprintf("%.0fs", ms/1000), true
	case ms >= 1000:
		return fmt.Sprintf("%.1fs", ms/1000), true
	case ms >= 10:
		return fmt.Sprintf("%.0fms", ms), true
	case ms >= 1:
		return fmt.Sprintf("%.1fms", ms), true
	}
	return fmt.Sprintf("%.2fms", ms), true
}
