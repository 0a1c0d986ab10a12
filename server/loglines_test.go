package server

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestTheLastLinesOfALogAreKeptWithinBounds(t *testing.T) {
	l := &LogLines{}
	log := zerolog.New(zerolog.MultiLevelWriter(l)).Level(zerolog.TraceLevel)
	log.Trace().Msg("a prompt")
	for i := range mostLogLines + 5 {
		log.Info().Int("i", i).Msg("line")
	}
	lines, next, _ := l.from(0)
	if len(lines) != mostLogLines || next != mostLogLines+5 || string(lines[0]) != `{"level":"info","i":5,"message":"line"}`+"\n" {
		t.Errorf("%d lines up to %d, the first %s", len(lines), next, lines[0])
	}
	log.Info().Str("much", strings.Repeat("x", mostLogLine)).Msg("line")
	for range mostLogBytes / 4000 {
		log.Info().Str("much", strings.Repeat("x", 8000)).Msg("line")
	}
	if lines, _, _ = l.from(0); l.bytes > mostLogBytes || l.bytes < mostLogBytes/2 {
		t.Errorf("%d bytes in %d lines are kept", l.bytes, len(lines))
	}
	log.Info().Str("much", strings.Repeat("x", mostLogLine)).Msg("line")
	if lines, next, _ = l.from(next); !strings.Contains(string(lines[len(lines)-1]), "bytes is left out") {
		t.Errorf("a long line is %.80s", lines[len(lines)-1])
	}
	if lines, _, _ = l.from(next + 10); len(lines) != 0 {
		t.Errorf("of the future there are %d lines", len(lines))
	}
}

// withLogs is a server whose log is kept, with a key of each kind.
func withLogs(t *testing.T) *fixture {
	return start(t, says(t, "Hi."), func(o *Options) {
		o.LogLines = &LogLines{}
		o.Log = zerolog.New(zerolog.MultiLevelWriter(o.LogLines))
		o.APIKeysFile = keyFile(t, "alice: a\nops: o admin", 0o600)
	})
}

func TestAdminsReadTheLogWithoutPrompts(t *testing.T) {
	f := withLogs(t)
	if w := f.as("POST", "/v1/chat/completions", "a", strings.Replace(chatBody(""), "Hi", "confidential", 1)); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w := f.as("GET", "/debug/logs", "o", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/x-ndjson" || !strings.Contains(w.Body.String(), `"path":"/v1/chat/completions"`) || strings.Contains(w.Body.String(), "confidential") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.as("GET", "/debug/logs?tail=1", "o", ""); strings.Count(w.Body.String(), "\n") != 1 || !strings.Contains(w.Body.String(), "/debug/logs") {
		t.Errorf("the last line is %s", w.Body)
	}
	if w := f.as("GET", "/debug/logs?tail=0", "o", ""); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("no line is %s", w.Body)
	}
	wantError(t, "without an admin's key", f.as("GET", "/debug/logs", "a", "").Code, f.as("GET", "/debug/logs", "a", "").Body.Bytes(), 403, "admin_key_required", "")
	if w := f.as("GET", "/debug/logs?tail=1", "o", ""); !strings.Contains(w.Body.String(), `"key":"alice"`) {
		t.Errorf("the line of a request that was refused does not name its key: %s", w.Body)
	}
	for query, param := range map[string]string{"tail=-1": "tail", "tail=all": "tail", "follow=perhaps": "follow", "since=1h": "since"} {
		if w := f.as("GET", "/debug/logs?"+query, "o", ""); w.Code != 400 || !strings.Contains(w.Body.String(), `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestALogIsFollowedUntilTheServerStops(t *testing.T) {
	f := withLogs(t)
	debug := httptest.NewServer(f.debug.routes())
	defer debug.Close()
	f.opt.Log.Info().Msg("before")
	var all []*bufio.Scanner
	for range mostFollowers {
		resp, err := http.Get(debug.URL + "/debug/logs?follow=true&tail=1")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		all = append(all, bufio.NewScanner(resp.Body))
	}
	reads := func(want string) {
		t.Helper()
		for i, lines := range all {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("%d reads %s, want %s", i, lines.Text(), want)
			}
		}
	}
	reads("before")
	resp, err := http.Get(debug.URL + "/debug/logs?follow=true")
	if err != nil || resp.StatusCode != 429 {
		t.Errorf("one more: %v, %v", resp.Status, err)
	}
	resp.Body.Close()
	reads(`"status":429`)
	for i := range 3 {
		f.opt.Log.Info().Msg(fmt.Sprint("line ", i))
		reads(fmt.Sprint("line ", i))
	}
	f.models.draining.Store(true)
	f.admin.lines.wake()
	for i, lines := range all {
		for lines.Scan() {
			if !strings.Contains(lines.Text(), "/debug/logs") { // the others' ends
				t.Errorf("%d reads %s", i, lines.Text())
			}
		}
		if lines.Err() != nil {
			t.Errorf("%d ends with %v", i, lines.Err())
		}
	}
	f.models.draining.Store(false)
}
