package server

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestKeepAlivesOfAResponseAreNumberedAmongItsEvents(t *testing.T) {
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	var written atomic.Int32
	f := start(t, &toy.Model{Logits: func(_ []int32, row []float32) {
		clear(row)
		if row[20] = 50; written.Add(1) == 30 {
			<-gate // silence
		}
	}}, func(o *Options) { o.KeepAlive = time.Millisecond })
	t.Cleanup(open)
	f.withTemplate(template.ChatML)
	silent := 0
	stream := strings.Join(f.lines("/v1/responses", `{"input":"Hi","stream":true,"max_output_tokens":60}`, func(line string) {
		if strings.Contains(line, "response.in_progress") && strings.Contains(line, `\u0014`) {
			if silent++; silent == 4 {
				open()
			}
		}
	}), "\n") + "\n\n"
	whole := responseStream(t, []byte(stream)) // which checks the numbers
	_, _, again := f.do("GET", "/v1/responses/"+whole.ID+"?stream=true", nil)
	if string(again) != stream {
		t.Errorf("with its keep-alives the stream comes again as\n%s\nnot\n%s", again, stream)
	}
}
