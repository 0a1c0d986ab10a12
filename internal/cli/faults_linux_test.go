package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// What docs/soak.md says of faults, where it is cheap to try. Others have tests beside their code.

// chats asks a server's model for an answer and returns the status; a stream is left open.
func (s *own) chats(model, more string) *http.Response {
	s.t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"What is 12 * 7?"}],"max_tokens":8%s}`, model, more)
	resp, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestAStreamOfAServerThatIsKilledIsNotTakenForWholeAndTheNextServerHasItsPort(t *testing.T) {
	sweep.Full(t)
	s := startServeOf(t, []string{"--addr", "127.0.0.1:" + freePort(t), "--model", "lutra-tiny-s"})
	// More than connections hold: while nobody reads, it does not end.
	stream := bufio.NewReader(s.chats("lutra-tiny-s", `,"stream":true,"ignore_eos":true,"n":8,"max_tokens":800,"stop":null,"logprobs":true,"top_logprobs":20`).Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGKILL)
	if rest, err := io.ReadAll(stream); err == nil || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the stream ends with %v, want an error", err)
	}
	s.ends()
	next := startServeOf(t, []string{"--addr", strings.TrimPrefix(s.url, "http://"), "--model", "lutra-tiny-s"})
	if resp := next.chats("lutra-tiny-s", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("the next server: status %d", resp.StatusCode)
	}
}

func TestAServerWithoutFileDescriptorsAnswersWhenThereAreSome(t *testing.T) {
	s := startServe(t)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(len(files) + 4), Max: uint64(len(files) + 4)}
	if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	for range 12 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	s.wait("out of file descriptors")
	for _, c := range all {
		c.Close()
	}
	if resp := s.chats("lutra-tiny-s", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestAModelWhoseFileIsCutShortFailsByNameAndOthersGoOn(t *testing.T) {
	sweep.Full(t)
	file := filepath.Join(t.TempDir(), "cut.gguf")
	if err := os.WriteFile(file, tinyModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServeOf(t, []string{"--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--model", file})
	if resp := s.chats("cut", ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	if err := os.Truncate(file, 1000); err != nil {
		t.Fatal(err)
	}
	resp := s.chats("cut", "")
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), "cut") {
		t.Errorf("%d %s, %v", resp.StatusCode, said, err)
	}
	if resp := s.chats("lutra-tiny-s", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("another model: status %d", resp.StatusCode)
	}
}
