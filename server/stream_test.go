package server

import (
	"sync"
	"testing"
	"time"
)

// Chunks that gather must not wait for later steps of the model. The first step lasts until the client
// has seen the role, the second until it has seen the first text.
func TestTheRoleAndTheFirstTextDoNotWaitForWhatFollows(t *testing.T) {
	seen := make(chan struct{}, 2)
	steps := 0
	m := endless(func() {
		if steps++; steps <= 2 {
			<-seen
		}
	})
	f := start(t, m, func(o *Options) { o.KeepAlive = time.Hour })
	unblock := sync.OnceFunc(func() { close(seen) })
	t.Cleanup(unblock)
	req := openaiRequest("Hi")
	req.MaxTokens = 50 //lint:ignore SA1019 the name that every client knows
	stream, err := f.client().CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for i := range 2 {
		c, err := stream.Recv()
		if err != nil || len(c.Choices) != 1 || (c.Choices[0].Delta.Content != "") != (i == 1) {
			t.Fatalf("chunk %d = %+v, %v, want the role, then text", i, c, err)
		}
		seen <- struct{}{}
	}
	unblock()
	n := 1
	for {
		c, err := stream.Recv()
		if err != nil {
			break
		}
		if len(c.Choices) == 1 && c.Choices[0].Delta.Content != "" {
			n++
		}
	}
	if n != 50 {
		t.Errorf("%d chunks of text came, want one a token, of 50", n)
	}
}
