package jobs

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// createFactor counts the bytes that are made of a byte of a request for a batch.
const createFactor = 4

// Protocol returns the routes of files and batches.
func (s *Store) Protocol() api.Protocol {
	o, m := openaiAPI{s}, messagesAPI{s}
	get := func(path string, answer func(*api.Call) error) api.Route {
		return api.Route{Path: path, Answer: told(answer)}
	}
	with := func(method, path string, answer func(*api.Call) error) api.Route {
		return api.Route{Method: method, Path: path, Answer: told(answer)}
	}
	reads := func(path string, answer func(*api.Call) error) api.Route {
		return api.Route{Path: path, Factor: createFactor, Answer: told(answer)}
	}
	return api.Protocol{Routes: []api.Route{
		with(http.MethodPost, "/v1/files", o.upload),
		get("/v1/files", o.showFiles),
		get("/v1/files/{id}", o.showFile),
		get("/v1/files/{id}/content", o.showContent),
		with(http.MethodDelete, "/v1/files/{id}", o.removeFile),
		reads("/v1/batches", o.create),
		get("/v1/batches", o.showBatches),
		get("/v1/batches/{id}", o.showBatch),
		with(http.MethodPost, "/v1/batches/{id}/cancel", o.cancel),
		reads("/v1/messages/batches", m.createMessages),
		get("/v1/messages/batches", m.showMessageBatches),
		get("/v1/messages/batches/{id}", m.showMessageBatch),
		with(http.MethodPost, "/v1/messages/batches/{id}/cancel", m.cancelMessages),
		with(http.MethodDelete, "/v1/messages/batches/{id}", m.removeMessages),
		get("/v1/messages/batches/{id}/results", m.showResults),
	}}
}

// told returns answer with its errors as clients see them.
func told(answer func(*api.Call) error) func(*api.Call) error {
	return func(c *api.Call) error {
		err := answer(c)
		for _, f := range faults {
			if errors.Is(err, f.err) {
				return &f.Fault
			}
		}
		return err
	}
}

// faults maps errors to the answers that clients see.
var faults = []struct {
	err error
	api.Fault
}{
	{errOff, api.Fault{Status: http.StatusNotFound, Type: api.TypeInvalid, Code: "jobs_off", Message: "This server keeps no files and batches. Its owner can name a folder for them: lutra serve --jobs FOLDER."}},
	{errClosed, api.Fault{Status: http.StatusServiceUnavailable, Type: api.TypeServer, Code: "unavailable", Message: "The folder of files and batches is not open yet. The server's log says more if that stays so.", RetryAfter: openAgain}},
	{errFull, api.Fault{Status: http.StatusInsufficientStorage, Type: api.TypeServer, Code: "jobs_full", Message: "There is no room for more files and answers (jobs.size). Delete files that are no longer needed."}},
	{errLarge, api.Fault{Status: http.StatusRequestEntityTooLarge, Type: api.TypeInvalid, Code: "request_too_large", Param: "file", Message: "The file is larger than this server takes (jobs.file)."}},
	{errUploads, api.Fault{Status: http.StatusTooManyRequests, Type: api.TypeRateLimit, Code: "server_busy", Message: "Too many files are being sent. Please try again shortly.", RetryAfter: time.Second}},
	{errMany, api.Fault{Status: http.StatusTooManyRequests, Type: api.TypeRateLimit, Code: "too_many_jobs", Message: "The server keeps as many files or batches as it may (jobs.files, jobs.batches). Delete some."}},
	{errKeyMany, api.Fault{Status: http.StatusTooManyRequests, Type: api.TypeRateLimit, Code: "too_many_jobs", Message: "This key has as many batches that have not ended as it may (jobs.batches_per_key)."}},
	{errInUse, api.Fault{Status: http.StatusConflict, Type: api.TypeInvalid, Code: "file_in_use", Message: "A batch that has not ended reads the file. Cancel it first."}},
	{errGoing, api.Fault{Status: http.StatusConflict, Type: api.TypeInvalid, Code: "batch_in_progress", Message: "The batch has not ended. Cancel it first."}},
	{errHasEnded, api.Fault{Status: http.StatusConflict, Type: api.TypeInvalid, Code: "batch_ended", Message: "The batch has ended, and cannot be cancelled any more."}},
}

// owner names the key whose files and batches a call is about.
func owner(c *api.Call) string { return hex.EncodeToString([]byte(c.Key.Owner())) }

// id returns the id that a path has.
func id(c *api.Call) string { return chi.URLParamFromCtx(c.Context(), "id") }

// orMissing words errMissing for the call's id.
func orMissing(c *api.Call, what string, err error) error {
	if errors.Is(err, errMissing) {
		return api.InvalidStatus(http.StatusNotFound, "not_found", "", "There is no "+what+" '"+jsonread.Brief(id(c))+"'.")
	}
	return err
}

// limit reads how many elements of a list are asked for.
func limit(q url.Values, most int) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 20, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, api.Invalid(jsonread.CodeValue, "limit", "Invalid 'limit': expected an integer between 1 and %d, but got '%s'.", most, jsonread.Brief(text))
	}
	return n, nil
}

// pageFault words errMissing for the id that a page begins at.
func pageFault(param, id string, err error) error {
	if errors.Is(err, errMissing) {
		return api.Invalid(jsonread.CodeValue, param, "Invalid '%s': there is no '%s' in the list.", param, jsonread.Brief(id))
	}
	return err
}

// showContentOf answers with what a file holds. A client that takes no piece of it within Call.WriteTimeout is left.
func (s *folder) showContentOf(c *api.Call, f *File, media string) error {
	content, err := s.read(f)
	if err != nil {
		return err
	}
	defer content.Close()
	h := c.W.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.FormatInt(f.Bytes, 10))
	return send(c, content)
}

func send(c *api.Call, content *os.File) error {
	rc := http.NewResponseController(c.W)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	piece := make([]byte, 64<<10)
	for {
		n, err := content.Read(piece)
		_ = rc.SetWriteDeadline(time.Now().Add(c.WriteTimeout)) // tests' writers have none
		if _, gone := c.W.Write(piece[:n]); gone != nil {
			return context.Canceled
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil || c.Context().Err() != nil:
			return cmp.Or(err, c.Context().Err())
		}
	}
}
