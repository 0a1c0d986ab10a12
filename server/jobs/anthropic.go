package jobs

import (
	stdbytes "bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// messagesAPI answers requests of Anthropic's API.
type messagesAPI struct{ *Store }

// messageBatch is a batch as Anthropic's API has it.
type messageBatch struct {
	ID                string        `json:"id"`
	Type              string        `json:"type"`
	ProcessingStatus  string        `json:"processing_status"`
	RequestCounts     messageCounts `json:"request_counts"`
	EndedAt           *string       `json:"ended_at"`
	CreatedAt         string        `json:"created_at"`
	ExpiresAt         string        `json:"expires_at"`
	ArchivedAt        *string       `json:"archived_at"`
	CancelInitiatedAt *string       `json:"cancel_initiated_at"`
	ResultsURL        *string       `json:"results_url"`
}

type messageCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

func newMessageBatch(c *api.Call, r *record) messageBatch {
	b := messageBatch{ID: r.ID, Type: "message_batch", ProcessingStatus: "in_progress", CreatedAt: stamp(r.Created / int64(time.Second)), ExpiresAt: stamp(r.Deadline),
		RequestCounts: messageCounts{Processing: r.Lines - r.Done - r.Failed, Succeeded: r.Done, Errored: r.Failed}}
	if r.Cancelling != 0 {
		b.ProcessingStatus, b.CancelInitiatedAt = "canceling", jsonwrite.Optional(stamp(r.Cancelling))
	}
	if r.ended() {
		b.ProcessingStatus, b.EndedAt = "ended", jsonwrite.Optional(stamp(r.Ended))
		b.ResultsURL = jsonwrite.Optional(origin(c.Request) + "/v1/messages/batches/" + r.ID + "/results")
		b.RequestCounts.Processing = 0
		if r.Status == StatusCancelled {
			b.RequestCounts.Canceled = r.Undone
		} else {
			b.RequestCounts.Expired = r.Undone
		}
	}
	return b
}

// origin returns the server's URL as the client has it, or its proxy says.
func origin(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// customID matches a custom_id of Anthropic's API.
var customID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// messageWindow bounds the time of a Message Batch.
const messageWindow = 24 * time.Hour

// createMessages answers POST /v1/messages/batches.
func (s messagesAPI) createMessages(c *api.Call) error {
	r := record{ID: newID(messagePrefix), Owner: owner(c), Form: formAnthropic, Endpoint: messagesEndpoint, Window: "24h"}
	s.mu.Lock()
	err := s.room(r.Owner)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	var input stdbytes.Buffer
	seen := map[string]bool{}
	for i, o := range c.Body.Each("requests", s.opt.Lines) {
		id, params := "", o.Raw("params")
		o.String("custom_id", &id)
		switch {
		case o.Err != nil:
		case !customID.MatchString(id):
			o.Fail(jsonread.CodeValue, "custom_id", "it must have 1 to 64 letters, digits, hyphens and underscores.")
		case seen[id]:
			o.Fail(jsonread.CodeValue, "custom_id", "another request has it too.")
		case jsonread.Kind(params) != "an object":
			o.Fail(jsonread.CodeMissing, "params", "it must be an object.")
		}
		if params, ok := o.Object("params"); ok && string(params.Raw("stream")) == "true" {
			params.Fail(jsonread.CodeUnsupported, "stream", "answers of batches are no streams.")
			o.Adopt(params)
		}
		if o.Err != nil {
			return o.Err
		}
		seen[id] = true
		if i > 0 {
			input.WriteByte('\n')
		}
		fmt.Fprintf(&input, `{"custom_id":%q,"params":`, id) // of letters alone
		_ = json.Compact(&input, params)                     // it was read
		input.WriteByte('}')
	}
	if c.Body.Err == nil && len(seen) == 0 {
		c.Body.Fail(jsonread.CodeMissing, "requests", "send at least one request.")
	}
	if err := fields.Finish(c); err != nil {
		return err
	}
	f := &File{Owner: r.Owner, Name: r.ID + ".jsonl", Purpose: purposeInput, Batch: r.ID}
	if err := s.addFile(c.Context(), f, &input, 0); err != nil {
		return err
	}
	r.Input = f.ID
	lines, err := s.check(c.Context(), &r, f)
	var kept *record
	if err == nil {
		kept, err = s.addBatch(r, lines, messageWindow)
	}
	if err != nil {
		s.mu.Lock()
		s.dropFile(f.ID)
		s.mu.Unlock()
		return err
	}
	return c.JSON(newMessageBatch(c, kept))
}

// showMessageBatches answers GET /v1/messages/batches, the newest first.
func (s messagesAPI) showMessageBatches(c *api.Call) error {
	q := c.URL.Query()
	all, err := s.listBatches(owner(c), formAnthropic)
	if err != nil {
		return err
	}
	n, err := limit(q, 1000)
	if err != nil {
		return err
	}
	at, param := q.Get("after_id"), "after_id"
	back := q.Get("before_id") != ""
	if back {
		at, param = q.Get("before_id"), "before_id"
	}
	part, more, err := page(all, recordID, at, back, n)
	if err != nil {
		return pageFault(param, at, err)
	}
	data := make([]messageBatch, len(part))
	for i, r := range part {
		data[i] = newMessageBatch(c, r)
	}
	return c.JSON(newList(data, func(b messageBatch) string { return b.ID }, more))
}

// showMessageBatch answers GET /v1/messages/batches/{id}.
func (s messagesAPI) showMessageBatch(c *api.Call) error {
	r, err := s.batch(owner(c), formAnthropic, id(c))
	if err != nil {
		return orMissing(c, "batch", err)
	}
	return c.JSON(newMessageBatch(c, r))
}

// cancelMessages answers POST /v1/messages/batches/{id}/cancel.
func (s messagesAPI) cancelMessages(c *api.Call) error {
	r, err := s.cancelBatch(owner(c), formAnthropic, id(c))
	if err != nil {
		return orMissing(c, "batch", err)
	}
	return c.JSON(newMessageBatch(c, r))
}

// removeMessages answers DELETE /v1/messages/batches/{id}.
func (s messagesAPI) removeMessages(c *api.Call) error {
	if err := s.deleteBatch(owner(c), formAnthropic, id(c)); err != nil {
		return orMissing(c, "batch", err)
	}
	return c.JSON(map[string]string{"id": id(c), "type": "message_batch_deleted"})
}

// showResults answers GET /v1/messages/batches/{id}/results.
func (s messagesAPI) showResults(c *api.Call) error {
	r, err := s.batch(owner(c), formAnthropic, id(c))
	switch {
	case err != nil:
		return orMissing(c, "batch", err)
	case !r.ended():
		return errGoing
	}
	s.mu.Lock()
	f := s.files[r.Output]
	s.mu.Unlock()
	if f == nil {
		return orMissing(c, "batch", errMissing)
	}
	return orMissing(c, "batch", s.showContentOf(c, f, "application/x-jsonl"))
}
