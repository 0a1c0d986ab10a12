//go:build unix

package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestADownloadAtATerminalHasABarAndCtrlCStopsIt(t *testing.T) {
	sweep.Full(t)
	h := hubtest.New(t)
	e, _ := hub.Lookup("bonsai-1.7b")
	h.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		held := strings.HasSuffix(h.CDN, r.Host) && strings.HasPrefix(r.Header.Get("Range"), "bytes=33554432-")
		if held {
			<-r.Context().Done()
		}
		return held
	}
	h.Put(e.Ref.ID(), e.Ref.File, make([]byte, 40<<20)) // two parts, the second of which does not come
	environment := hubEnvironment(t, h)
	for _, args := range [][]string{{"pull", "bonsai-1.7b"}, {"chat", "--model", "bonsai-1.7b"}} {
		cmd := process(t, args...)
		for key, v := range environment {
			cmd.Env = append(cmd.Env, key+"="+v)
		}
		s := clienttest.Start(t, cmd, 100)
		s.Sees("bonsai-1.7b", "%", "MiB")
		s.Types(ctrlC)
		s.Sees("the same command goes on from there")
		err := cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != 130 {
			t.Errorf("lutra %s ends with %d, %v", args[0], status, err)
		}
	}
	cmd := process(t, "chat", "--model", "lutra-tiny-s")
	for key, v := range environment {
		cmd.Env = append(cmd.Env, key+"="+v)
	}
	s := clienttest.Start(t, cmd, 100)
	s.Sees("> ")
	s.Types("/model bonsai-1.7b" + enter)
	s.Sees("MiB")
	s.Types(ctrlC)
	s.Sees("(stopped)", "> ")
	s.Types("/model" + enter)
	s.Sees("model: lutra-tiny-s, of", "> ")
	s.Types(ctrlD)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
