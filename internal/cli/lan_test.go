package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// replicas is the number of servers that the examples of docs/fleet.md name.
const replicas = 3

// balancer is a program of docs/fleet.md that stands before servers.
type balancer struct {
	lang, beginning string // of its block
	needs           func(t testing.TB)
	command         func(t *testing.T, dir, file, port string) *exec.Cmd // with a file that holds the block
	inTurns         *strings.Replacer                                    // changes the block: servers take turns
}

var balancers = map[string]balancer{
	"haproxy": {
		needs: func(t testing.TB) { clienttest.Programs(t, "haproxy") },
		lang:  "haproxy", beginning: "global",
		command: func(t *testing.T, _, file, _ string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "haproxy", "-db", "-f", file)
		},
		inTurns: strings.NewReplacer("balance hash var(txn.beginning)", "balance roundrobin", "    hash-type consistent\n", "", "    hash-balance-factor 150\n", ""),
	},
	"nginx": {
		needs: func(t testing.TB) { clienttest.Programs(t, "nginx") },
		lang:  "nginx", beginning: "map",
		command: func(t *testing.T, dir, file, _ string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "nginx", "-p", dir, "-e", "stderr", "-c", file)
		},
		inTurns: strings.NewReplacer("    hash $beginning consistent;\n", ""),
	},
	"litellm": {
		needs: func(t testing.TB) { clienttest.Python(t, proxyPackages...) },
		lang:  "yaml", beginning: "model_list:",
		command: func(t *testing.T, dir, file, port string) *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), clienttest.Python(t, proxyPackages...), "-c", "from litellm import run_server; run_server()",
				"--config", file, "--host", "127.0.0.1", "--port", port)
			cmd.Env = append(os.Environ(), "HOME="+dir, "LITELLM_MASTER_KEY="+litellmKey, "LITELLM_LOCAL_MODEL_COST_MAP=True", "NO_PROXY=*", "no_proxy=*")
			return cmd
		},
		inTurns: strings.NewReplacer("  optional_pre_call_checks: [session_affinity]\n", ""),
	},
}

// proxyPackages are LiteLLM and one that its proxy alone imports.
var proxyPackages = []string{"litellm", "apscheduler"}

// litellmKey is one that LiteLLM takes for hard to guess.
const litellmKey = "sk-51f2c0a86d4be79317ac60de2b84f593" //nolint:gosec // of this test

// balance starts a program with its block of docs/fleet.md, changed by change, before servers, and
// returns its address.
func (b balancer) balance(t *testing.T, change func(block string) string, servers []string) string {
	t.Helper()
	block := ""
	for _, text := range blocks(document(t, "fleet.md"), b.lang) {
		if strings.HasPrefix(text, b.beginning) {
			block = change(text)
		}
	}
	for i, s := range servers {
		block = strings.Replace(block, fmt.Sprintf("10.0.0.%d:8080", 5+i), s, 1)
	}
	if block == "" || strings.Contains(block, "10.0.0.") {
		t.Fatalf("docs/fleet.md has no block of %s for %d servers", b.lang, len(servers))
	}
	port, dir := freePort(t), t.TempDir()
	block = strings.NewReplacer("bind :8000", "bind 127.0.0.1:"+port, "listen 8000", "listen 127.0.0.1:"+port).Replace(block)
	if b.lang == "nginx" {
		block = proxies[0].configure(block, dir, "", "")
	}
	file := filepath.Join(dir, "conf."+b.lang)
	if err := os.WriteFile(file, []byte(block+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := b.command(t, dir, file, port)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	ended := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { // the test's context has ended
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", b.lang, said.Bytes())
		}
	})
	for {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return "http://127.0.0.1:" + port
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v ends: %v\n%s", cmd.Args, err, said.Bytes())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var listening = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// replica is a server that can be killed.
type replica struct {
	cmd   *exec.Cmd
	addr  string
	ended func() // waits until it has, and its port is free
}

// startReplicas starts servers as processes.
func startReplicas(t *testing.T) (list []replica, addrs []string) {
	t.Helper()
	for range replicas {
		r := startReplica(t, "127.0.0.1:0")
		list, addrs = append(list, r), append(addrs, r.addr)
	}
	return list, addrs
}

// startReplica starts a server as a process, with these further variables.
func startReplica(t *testing.T, addr string, environ ...string) replica {
	t.Helper()
	cmd := process(t, "serve", "--addr", addr, "--model", "lutra-tiny-s")
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), ""
	var found []string
	for found == nil && lines.Scan() {
		said += lines.Text() + "\n"
		found = listening.FindStringSubmatch(lines.Text())
	}
	if found == nil {
		t.Fatalf("serve ends:\n%s", said)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, out)
	}()
	ended := sync.OnceFunc(func() {
		<-read
		_ = cmd.Wait()
	})
	t.Cleanup(ended) // killed with the test's context
	return replica{cmd, found[1], ended}
}

// signal sends a signal to the server.
func (r replica) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// errCut is the error of a client whose stream broke off.
var errCut = errors.New("a stream ends without [DONE]")

// converse asks for the answer to a conversation of a name, and whether any of it had come when an
// error did.
func converse(t *testing.T, base, name string, stream bool, messages ...map[string]string) (text string, begun bool, err error) {
	body, err := json.Marshal(map[string]any{"model": "lutra-tiny-s", "messages": messages, "stream": stream, "seed": 1, "max_tokens": 100})
	if err != nil {
		return "", false, err
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+litellmKey)
	req.Header.Set("X-LiteLLM-Session-Id", name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return "", false, fmt.Errorf("%s: %s", resp.Status, said)
	}
	type choice struct{ Message, Delta struct{ Content string } }
	var one struct{ Choices []choice }
	if !stream {
		if err := json.NewDecoder(resp.Body).Decode(&one); err != nil {
			return "", true, err
		}
		return one.Choices[0].Message.Content, true, nil
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case data == "[DONE]":
			return text, true, nil
		case !ok:
			continue
		}
		one.Choices = nil
		if err := json.Unmarshal([]byte(data), &one); err != nil {
			return text, true, err
		}
		for _, c := range one.Choices {
			text += c.Delta.Content
		}
	}
	return text, true, errors.Join(errCut, lines.Err())
}

func say(role, text string) map[string]string {
	return map[string]string{"role": role, "content": text}
}

// question is the i-th of some hundreds.
func question(i int) string {
	return fmt.Sprintf("A box holds %d eggs. Ann buys %d boxes. How many eggs does she have?", 2+i%17, 3+i%19)
}

func TestReplicasOnALANLoseOnlyStreamsThatHadBegun(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts servers")
	}
	for name, b := range balancers {
		t.Run(name, func(t *testing.T) {
			b.needs(t)
			servers, addrs := startReplicas(t)
			base := b.balance(t, func(block string) string { return block }, addrs)
			var (
				all      = sweep.Of(t, 480, 2000)
				next     atomic.Int64
				broken   atomic.Int64
				answers  sync.Map // by question: the same from every server
				asking   sync.WaitGroup
				end      = func(i int64, s os.Signal) { servers[i].signal(t, s) }
				endAfter = map[int64]func(){
					int64(all / 3):     func() { end(1, os.Kill) },
					int64(2 * all / 3): func() { end(2, syscall.SIGTERM) },
				}
			)
			for range 8 {
				asking.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(all) {
							return
						}
						if f := endAfter[i]; f != nil {
							f()
						}
						stream := i%2 == 0
						text, begun, err := converse(t, base, fmt.Sprint(i), stream, say("user", question(int(i))))
						switch {
						case err != nil && stream && begun:
							broken.Add(1) // as promised: an error, and no end
						case err != nil:
							t.Errorf("request %d is lost: %v", i, err)
						default:
							if first, there := answers.LoadOrStore(question(int(i)), text); there && first != text {
								t.Errorf("%q is answered %q and %q", question(int(i)), first, text)
							}
						}
					}
				})
			}
			asking.Wait()
			t.Logf("%d requests, one of %d servers killed, one drained: %d streams broken off", all, replicas, broken.Load())
			if n := broken.Load(); n > 8 {
				t.Errorf("%d streams are broken off: no more than 8 ran", n)
			}
		})
	}
}

// breaking is a server whose answers break off: a stream amid its words, another amid its length.
func breaking(t *testing.T) (addr string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Stream bool }
		if r.Method == http.MethodGet || json.NewDecoder(r.Body).Decode(&asked) != nil {
			return // it is healthy
		}
		if asked.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, delta := range []string{`"role": "assistant", "content": ""`, `"content": "She has"`, `"content": " 84"`} {
				fmt.Fprintf(w, "data: {\"id\": \"1\", \"object\": \"chat.completion.chunk\", \"created\": 1, \"model\": \"lutra-tiny-s\", \"choices\": [{\"index\": 0, \"delta\": {%s}, \"finish_reason\": null}]}\n\n", delta)
			}
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"id": "1", "object": "chat.completion", "created": 1, "model": "lutra-tiny-s", "choices": [`)
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestAnAnswerThatBreaksOffBehindABalancerDoesNotLookWhole(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts servers")
	}
	for name, b := range balancers {
		t.Run(name, func(t *testing.T) {
			b.needs(t)
			addr := breaking(t)
			base := b.balance(t, func(block string) string { return block }, []string{addr, addr, addr})
			if text, begun, err := converse(t, base, name, true, say("user", question(1))); err == nil || !begun || !errors.Is(err, errCut) {
				t.Errorf("of a stream that broke off the client sees %q, begun: %v, and the error %v", text, begun, err)
			}
			if text, _, err := converse(t, base, name, false, say("user", question(1))); err == nil {
				t.Errorf("of an answer that broke off the client sees %q", text)
			}
		})
	}
}

// hits are the prompt tokens that servers looked up and found in their caches.
func hits(t *testing.T, addrs []string) (found, asked float64) {
	t.Helper()
	for _, a := range addrs {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+a+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), " ")
			v, err := strconv.ParseFloat(value, 64)
			switch {
			case err != nil:
			case strings.HasPrefix(name, "lutra_prefix_cache_hits_total"):
				found += v
			case strings.HasPrefix(name, "lutra_prefix_cache_queries_total"):
				asked += v
			}
		}
		resp.Body.Close()
	}
	return found, asked
}

func TestConversationsStayWhereTheirBeginningIsComputed(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("starts servers")
	}
	for name, b := range balancers {
		t.Run(name, func(t *testing.T) {
			b.needs(t)
			share := func(change func(string) string) float64 {
				_, addrs := startReplicas(t)
				base := b.balance(t, change, addrs)
				for i := range sweep.Of(t, 24, 120) {
					history := []map[string]string{say("system", "You are a careful teacher of arithmetic.")}
					for turn := range 4 {
						history = append(history, say("user", question(i+100*turn)))
						text, _, err := converse(t, base, fmt.Sprint(i), false, history...)
						if err != nil {
							t.Fatal(err)
						}
						history = append(history, say("assistant", text))
					}
				}
				found, asked := hits(t, addrs)
				return found / asked
			}
			sticky, other := share(func(block string) string { return block }), share(b.inTurns.Replace)
			t.Logf("prompt tokens found in the cache: %.1f %%, in turns %.1f %%: %.2f times", 100*sticky, 100*other, sticky/other)
			if sticky <= 1.2*other {
				t.Errorf("stickiness finds %.1f %% of the prompts' tokens, servers in turns %.1f %%", 100*sticky, 100*other)
			}
		})
	}
}
