package cli

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/server"
)

// console returns a terminal's line for an event.
func console(t *testing.T, log func(zerolog.Logger)) string {
	t.Helper()
	var out bytes.Buffer
	l := NewLogger(config.Log{Level: "info", Format: "console"}, &out)
	log(l)
	return regexp.MustCompile(`^\d\d:\d\d:\d\d INF `).ReplaceAllString(out.String(), "")
}

func TestARequestIsOneLineForPeople(t *testing.T) {
	chat := func(l zerolog.Logger) *zerolog.Event {
		return l.Info().Str("id", "abc").Str("method", "POST").Str("path", "/v1/chat/completions").Int("status", 200).Dur("duration_ms", 210*time.Millisecond).
			Str("model", "lutra-tiny-l").Str("strategy", "single").Int("prompt_tokens", 59).Int("cached_tokens", 0).Int("completion_tokens", 80).
			Dur("ttft_ms", 9100*time.Microsecond).Dur("tpot_ms", 3140*time.Microsecond).Str("finish", "stop")
	}
	got := console(t, func(l zerolog.Logger) { chat(l).Msg("request") })
	if want := "chat lutra-tiny-l 200 59+80 tokens ttft 9.1ms 3.1ms/token stop 210ms\n"; got != want {
		t.Errorf("a chat is %q, want %q", got, want)
	}
	for want, log := range map[string]func(zerolog.Logger){
		"GET /v1/models 200 0.20ms\n": func(l zerolog.Logger) {
			l.Info().Str("method", "GET").Str("path", "/v1/models").Int("status", 200).Dur("duration_ms", 200*time.Microsecond).Msg("request")
		},
		"chat m 400 0+0 tokens 12s key k1: no\n": func(l zerolog.Logger) {
			l.Info().Str("path", "/v1/chat/completions").Str("method", "POST").Str("model", "m").Str("strategy", "single").Int("status", 400).
				Dur("duration_ms", 12*time.Second).Str("key", "k1").Str("error", "no").Msg("request")
		},
		"completion m 200 bon8 5+9 tokens (4 cached) 1.5s\n": func(l zerolog.Logger) {
			l.Info().Str("path", "/v1/completions").Str("method", "POST").Str("model", "m").Str("strategy", "bon8").Int("prompt_tokens", 5).Int("cached_tokens", 4).
				Int("completion_tokens", 9).Int("status", 200).Dur("duration_ms", 1500*time.Millisecond).Msg("request")
		},
		"POST /[2Jx 404 1.0ms: what\n": func(l zerolog.Logger) {
			l.Info().Str("path", "/\x1b[2Jx").Str("method", "POST").Int("status", 404).Dur("duration_ms", time.Millisecond).Str("error", "what\x07").Msg("request")
		},
		"chat 500 1.0ms: internal (id abc)\n": func(l zerolog.Logger) {
			l.Info().Str("id", "abc").Str("path", "/v1/chat/completions").Int("status", 500).Dur("duration_ms", time.Millisecond).Str("error", "internal").Msg("request")
		},
		"lutra-tiny-l: llama, 1.6 MiB of weights, context 1024, 2 threads, avx512 kernels, loaded in 22ms\n": func(l zerolog.Logger) {
			l.Info().Str("model", "lutra-tiny-l").Str("arch", "llama").Str("packing", "I2").Str("weights", "1.6 MiB").Int("context", 1024).Int("kv_tokens", 65536).
				Str("kernels", "avx512").Int("threads", 2).Dur("took_ms", 22*time.Millisecond).Msg("model loaded")
		},
		"big: loading /models/big.gguf (1.20 GiB)\n": func(l zerolog.Logger) {
			l.Info().Str("model", "big").Str("path", "/models/big.gguf").Str("size", "1.20 GiB").Msg("loading")
		},
		"big: 42 % loaded\n": func(l zerolog.Logger) { l.Info().Str("model", "big").Int("percent", 42).Msg("loading") },
		"ready on x: open y in a browser; try\n  curl 'a \"b\"'\n": func(l zerolog.Logger) {
			l.Info().Str("try", `curl 'a "b"'`).Msg("ready on x: open y in a browser")
		},
		"other field=1\n": func(l zerolog.Logger) { l.Info().Int("field", 1).Msg("other") },
	} {
		if got := console(t, log); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	chat(NewLogger(config.Log{Level: "info", Format: "json"}, &out)).Msg("request")
	for _, field := range []string{`"id":"abc"`, `"path":"/v1/chat/completions"`, `"ttft_ms":9.1`, `"cached_tokens":0`, `"message":"request"`} {
		if !strings.Contains(out.String(), field) {
			t.Errorf("JSON lacks %s: %s", field, &out)
		}
	}
}

func TestTheReadyLineNamesAHostThatClientsCanUse(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:8080": "http://127.0.0.1:8080",
		"[::1]:8080": "http://[::1]:8080", "192.168.0.7:1": "http://192.168.0.7:1",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := baseURL(server.Options{}, tcp); got != want {
			t.Errorf("a server on %s is at %s, want %s", addr, got, want)
		}
	}
	if got := tryCommand(server.Options{Exposure: server.Exposure{APIKeys: []string{"secret"}}}, "http://h:1", "windows"); got !=
		`curl http://h:1/v1/chat/completions -H "Authorization: Bearer KEY" -d "{\"temperature\": 0, \"messages\": [{\"role\": \"user\", \"content\": \"What is 12 * 7?\"}]}"` {
		t.Errorf("on Windows: %s", got)
	}
}

// TestTheReadyLinesCommandWorksWhenPasted runs what a server prints, in a shell.
func TestTheReadyLinesCommandWorksWhenPasted(t *testing.T) {
	sweep.Full(t)
	clienttest.Programs(t, "sh", "curl")
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	for _, args := range [][]string{
		{"--addr", "127.0.0.1:0"},
		{"--addr", "0.0.0.0:0", "--api-key", "secret"},
		{"--addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key},
	} {
		s := serving(t, append([]string{"--model", "lutra-tiny-s"}, args...)...)
		if strings.Contains(s.try, "secret") {
			t.Errorf("the log shows a key: %s", s.try)
		}
		out, err := exec.Command("sh", "-c", strings.ReplaceAll(s.try, "Bearer KEY", "Bearer secret")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Answer: 84") {
			t.Errorf("serve %q: %s\n%s%v", args, s.try, out, err)
		}
	}
}

func TestACertificateThatClientsTrustNeedsNoFlag(t *testing.T) {
	cert, key := selfSigned(t, t.TempDir())
	opt := server.Options{Exposure: server.Exposure{TLSCert: cert, TLSKey: key}}
	if trusted(opt, "https://127.0.0.1:1") {
		t.Error("a certificate that signed itself is trusted")
	}
	if got := tryCommand(opt, "https://h:1", "linux"); !strings.HasPrefix(got, "curl -k https://h:1/") {
		t.Errorf("its command is %s", got)
	}
	opt.TLSCert = filepath.Join(t.TempDir(), "none")
	if _, err := os.Stat(opt.TLSCert); err == nil || trusted(opt, "https://127.0.0.1:1") {
		t.Error("no certificate is trusted")
	}
}
