package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// BenchmarkStreams measures a token's cost above the model: HTTP, events, text
// decoding and the engine around a toy model, 200 tokens a stream.
func BenchmarkStreams(b *testing.B) {
	for _, streams := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			const tokens = 200
			f := start(b, endless(func() {}), nil)
			body := chatBody(fmt.Sprintf(`,"stream":true,"temperature":0,"max_tokens":%d`, tokens))
			for b.Loop() {
				var wg sync.WaitGroup
				for range streams {
					wg.Go(func() {
						resp, err := http.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
						if err != nil {
							b.Error(err)
							return
						}
						defer resp.Body.Close()
						if _, err := io.Copy(io.Discard, resp.Body); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*streams*tokens), "µs/token")
		})
	}
}
