package kvevents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/models/kv"
)

// libzmq and Python's msgpack read what is published, and ask for it again.
func TestPythonReadsEvents(t *testing.T) {
	python := clienttest.Python(t, "zmq", "msgpack")
	p := publisher(t)
	defer p.Close()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "testdata/reader.py",
		fmt.Sprintf("tcp://127.0.0.1:%d", port(p.pub.Addr())), fmt.Sprintf("tcp://127.0.0.1:%d", port(p.router.Addr())), "5")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Python subscribes", func() bool { return p.Stats().Subscribers == 1 })
	f, sql := p.Feed("owl"), &kv.Root{Number: 7, ID: 2, Name: "sql"}
	for i, change := range []func(){
		func() { f.Stored(0, -1, nil, []int32{1, 200, 70000, 0}) },
		func() { f.Stored(1, 0, nil, []int32{5, 6, 7, 8}) },
		func() { f.Stored(2, -1, sql, []int32{1, 200, 70000, 0}) },
		func() { f.Removed(1) },
		f.Cleared,
	} {
		change()
		eventually(t, "the batch is published", func() bool { return p.Stats().Batches == int64(i+1) })
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	first := blockHash(rootHash("owl", nil), []int32{1, 200, 70000, 0})
	second := blockHash(first, []int32{5, 6, 7, 8})
	want := []string{
		fmt.Sprintf(`[["BlockStored",[%d],null,[1,200,70000,0],4,null,"GPU",null]]`, first),
		fmt.Sprintf(`[["BlockStored",[%d],%d,[5,6,7,8],4,null,"GPU",null]]`, second, first),
		fmt.Sprintf(`[["BlockStored",[%d],null,[1,200,70000,0],4,2,"GPU","sql"]]`, blockHash(rootHash("owl", sql), []int32{1, 200, 70000, 0})),
		fmt.Sprintf(`[["BlockRemoved",[%d],"GPU"]]`, second),
		`[["AllBlocksCleared"]]`,
	}
	want = append(want, want[1:]...) // again
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want)+1 || lines[len(want)] != `["", -1, null]` {
		t.Fatalf("Python read\n%s", out.String())
	}
	for i, events := range want {
		var got []json.RawMessage
		var batch []json.RawMessage
		if json.Unmarshal([]byte(lines[i]), &got) != nil || json.Unmarshal(got[2], &batch) != nil || len(batch) != 3 {
			t.Fatalf("line %d: %s", i, lines[i])
		}
		number := i
		if i >= 5 {
			number = i - 4
		}
		var compact bytes.Buffer
		json.Compact(&compact, batch[1])
		if string(got[0]) != `"kv@`+pod+`@owl"` || string(got[1]) != fmt.Sprint(number) || compact.String() != events || string(batch[2]) != "0" {
			t.Errorf("message %d is %s, want number %d and %s", i, lines[i], number, events)
		}
	}
}
