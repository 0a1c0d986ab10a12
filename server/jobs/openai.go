package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// openaiAPI answers requests of OpenAI's API.
type openaiAPI struct{ *Store }

// fileObject is a file as OpenAI's API has it.
type fileObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

func newFileObject(f *File) fileObject {
	return fileObject{f.ID, "file", f.Bytes, f.Created / int64(time.Second), f.Expires, f.Name, f.Purpose, "processed"}
}

// list is a page of a list.
type list[T any] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

func newList[T any](data []T, id func(T) string, more bool) list[T] {
	l := list[T]{Object: "list", Data: data, HasMore: more}
	if len(data) > 0 {
		first, last := id(data[0]), id(data[len(data)-1])
		l.FirstID, l.LastID = &first, &last
	}
	return l
}

// Bounds of a form that sends a file.
const (
	mostFields   = 16
	mostField    = 1 << 10 // bytes
	uploadAtMost = time.Hour
)

// upload answers POST /v1/files.
func (s openaiAPI) upload(c *api.Call) error {
	ctx, cancel := context.WithTimeout(c.Context(), uploadAtMost)
	defer cancel()
	s.mu.Lock()
	err := s.ready()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// A page can send a form to any server without asking it first, but none with a key.
	if c.Header.Get("Origin") != "" && c.Header.Get("Authorization") == "" {
		return api.InvalidStatus(http.StatusForbidden, "cross_site_request", "", "A page that sends files must send an Authorization header with them.")
	}
	if err := c.Key.Admit(time.Now()); err != nil {
		return err
	}
	leave, err := c.Key.Enter()
	if err != nil {
		return err
	}
	defer leave()
	media, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return api.InvalidStatus(http.StatusUnsupportedMediaType, "unsupported_media_type", "", "The Content-Type must be multipart/form-data.")
	}
	rc := http.NewResponseController(c.W)
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	body := &patient{r: c.Request.Body, rc: rc, timeout: c.WriteTimeout}
	f, err := s.readForm(ctx, multipart.NewReader(body, params["boundary"]), owner(c))
	switch {
	case err == nil:
		return c.JSON(newFileObject(f))
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return api.InvalidStatus(http.StatusRequestTimeout, "timeout", "", "The request body did not arrive in time.")
	}
	return err
}

// patient reads a body of which each piece must arrive within a time.
type patient struct {
	r       io.Reader
	rc      *http.ResponseController
	timeout time.Duration
	err     error
}

func (p *patient) Read(b []byte) (n int, err error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(p.timeout)) // tests' writers have none
	n, err = p.r.Read(b)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// readForm reads a file and the fields about it, in any order.
func (s openaiAPI) readForm(ctx context.Context, form *multipart.Reader, owner string) (f *File, err error) {
	values := map[string]string{}
	defer func() {
		if err != nil && f != nil {
			s.mu.Lock()
			s.dropFile(f.ID)
			s.mu.Unlock()
			f = nil
		}
	}()
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && f == nil:
			return f, api.Invalid(jsonread.CodeMissing, "file", "The form has no file.")
		case errors.Is(err, io.EOF):
			return f, s.settle(f, values)
		case err != nil || n >= mostFields:
			return f, api.Invalid(jsonread.CodeValue, "", "The form could not be read, or has more than %d fields.", mostFields)
		}
		if name := part.FormName(); name != "file" {
			value, err := io.ReadAll(io.LimitReader(part, mostField+1))
			if err != nil || len(value) > mostField {
				return f, api.Invalid(jsonread.CodeValue, name, "The field '%s' of the form is longer than %d bytes.", jsonread.Brief(name), mostField)
			}
			values[name] = string(value)
			continue
		}
		if f != nil {
			return f, api.Invalid(jsonread.CodeValue, "file", "The form has two files.")
		}
		name := part.FileName()
		if len(name) > mostField {
			return f, api.Invalid(jsonread.CodeValue, "file", "The file's name is longer than %d bytes.", mostField)
		}
		sent := &File{Owner: owner, Name: cmp.Or(strings.ToValidUTF8(name, "\ufffd"), "upload.jsonl"), Purpose: purposeInput}
		if err := s.addFile(ctx, sent, part, 0); err != nil {
			return nil, err
		}
		f = sent
	}
}

// settle checks the fields that came with a file, and has it expire as they say.
func (s openaiAPI) settle(f *File, values map[string]string) error {
	purpose, given := values["purpose"]
	switch {
	case !given:
		return api.Invalid(jsonread.CodeMissing, "purpose", "Missing required parameter: 'purpose'.")
	case purpose != purposeInput:
		return api.Invalid(jsonread.CodeValue, "purpose", "Invalid 'purpose': this server keeps files of the purpose 'batch' alone, not '%s'.", jsonread.Brief(purpose))
	}
	if anchor, ok := values["expires_after[anchor]"]; ok && anchor != "created_at" {
		return api.Invalid(jsonread.CodeValue, "expires_after", "Invalid 'expires_after': the anchor must be 'created_at'.")
	}
	text, ok := values["expires_after[seconds]"]
	if !ok {
		return nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < leastKeep || seconds > mostKeep {
		return api.Invalid(jsonread.CodeValue, "expires_after", "Invalid 'expires_after': the seconds must be between %d and %d.", leastKeep, mostKeep)
	}
	return s.keepFile(f, time.Duration(seconds)*time.Second)
}

// Bounds of expires_after in seconds, as OpenAI has them.
const (
	leastKeep = 3600
	mostKeep  = 2592000
)

// showFiles answers GET /v1/files, by default the newest first.
func (s openaiAPI) showFiles(c *api.Call) error {
	q := c.URL.Query()
	all, err := s.listFiles(owner(c), q.Get("purpose"))
	if err != nil {
		return err
	}
	switch order := q.Get("order"); order {
	case "", "desc":
		slices.Reverse(all)
	case "asc":
	default:
		return api.Invalid(jsonread.CodeValue, "order", "Invalid 'order': expected 'asc' or 'desc', but got '%s'.", jsonread.Brief(order))
	}
	n, err := limit(q, 10_000)
	if err != nil {
		return err
	}
	part, more, err := page(all, func(f *File) string { return f.ID }, q.Get("after"), false, n)
	if err != nil {
		return pageFault("after", q.Get("after"), err)
	}
	data := make([]fileObject, len(part))
	for i, f := range part {
		data[i] = newFileObject(f)
	}
	return c.JSON(newList(data, func(f fileObject) string { return f.ID }, more))
}

// showFile answers GET /v1/files/{id}.
func (s openaiAPI) showFile(c *api.Call) error {
	f, err := s.file(owner(c), id(c))
	if err != nil {
		return orMissing(c, "file", err)
	}
	return c.JSON(newFileObject(f))
}

// showContent answers GET /v1/files/{id}/content.
func (s openaiAPI) showContent(c *api.Call) error {
	f, err := s.file(owner(c), id(c))
	if err == nil {
		err = s.showContentOf(c, f, "application/octet-stream")
	}
	return orMissing(c, "file", err)
}

// removeFile answers DELETE /v1/files/{id}.
func (s openaiAPI) removeFile(c *api.Call) error {
	if err := s.deleteFile(owner(c), id(c)); err != nil {
		return orMissing(c, "file", err)
	}
	return c.JSON(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id(c), "file", true})
}

// batchObject is a batch as OpenAI's API has it.
type batchObject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Endpoint         string            `json:"endpoint"`
	Errors           *batchErrors      `json:"errors"`
	InputFileID      string            `json:"input_file_id"`
	CompletionWindow string            `json:"completion_window"`
	Status           Status            `json:"status"`
	OutputFileID     *string           `json:"output_file_id"`
	ErrorFileID      *string           `json:"error_file_id"`
	CreatedAt        int64             `json:"created_at"`
	InProgressAt     *int64            `json:"in_progress_at"`
	ExpiresAt        int64             `json:"expires_at"`
	FinalizingAt     *int64            `json:"finalizing_at"`
	CompletedAt      *int64            `json:"completed_at"`
	FailedAt         *int64            `json:"failed_at"`
	ExpiredAt        *int64            `json:"expired_at"`
	CancellingAt     *int64            `json:"cancelling_at"`
	CancelledAt      *int64            `json:"cancelled_at"`
	RequestCounts    requestCounts     `json:"request_counts"`
	Metadata         map[string]string `json:"metadata"`
}

type batchErrors struct {
	Object string       `json:"object"`
	Data   []batchError `json:"data"`
}

type batchError struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	Line    *int    `json:"line"`
}

type requestCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// when returns a time that an API tells of; nil: it is not yet, or of another status.
func when(at int64, ok bool) *int64 {
	if at == 0 || !ok {
		return nil
	}
	return &at
}

func newBatchObject(r *record) batchObject {
	o := batchObject{ID: r.ID, Object: "batch", Endpoint: r.Endpoint, InputFileID: r.Input, CompletionWindow: r.Window, Status: r.Status,
		OutputFileID: jsonwrite.Optional(r.Output), ErrorFileID: jsonwrite.Optional(r.Failures), CreatedAt: r.Created / int64(time.Second), ExpiresAt: r.Deadline,
		FinalizingAt: when(r.Finalizing, true), CancellingAt: when(r.Cancelling, true), Metadata: r.Metadata,
		RequestCounts: requestCounts{r.Lines, r.Done, r.Failed + r.Undone}}
	o.InProgressAt = when(o.CreatedAt, r.Status != StatusFailed)
	o.CompletedAt, o.FailedAt = when(r.Ended, r.Status == StatusCompleted), when(r.Ended, r.Status == StatusFailed)
	o.ExpiredAt, o.CancelledAt = when(r.Ended, r.Status == StatusExpired), when(r.Ended, r.Status == StatusCancelled)
	if len(r.Faults) > 0 {
		o.Errors = &batchErrors{Object: "list"}
		for _, f := range r.Faults {
			o.Errors.Data = append(o.Errors.Data, batchError{f.Code, f.Message, jsonwrite.Optional(f.Param), &f.Line})
		}
	}
	return o
}

// window matches a completion_window in minutes, hours or days.
var window = regexp.MustCompile(`^([1-9][0-9]{0,4})([mhd])$`)

// mostWindow is the longest completion_window.
const mostWindow = 30 * 24 * time.Hour

// readWindow returns how long a batch may take; 0: the text says nothing that may be.
func readWindow(text string) time.Duration {
	m := window.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	d := time.Duration(n) * map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
	if d > mostWindow {
		return 0
	}
	return d
}

// Bounds of metadata.
const (
	mostPairs    = 16
	mostPairName = 64
	mostPair     = 512
)

// create answers POST /v1/batches.
func (s openaiAPI) create(c *api.Call) error {
	r := record{ID: newID(batchPrefix), Owner: owner(c), Form: formOpenAI}
	f := c.Body
	f.String("input_file_id", &r.Input)
	f.String("endpoint", &r.Endpoint)
	f.String("completion_window", &r.Window)
	within := readWindow(r.Window)
	switch {
	case f.Err != nil:
	case r.Input == "":
		f.Fail(jsonread.CodeMissing, "input_file_id", "name the file of requests.")
	case !slices.Contains(Endpoints, r.Endpoint):
		f.Fail(jsonread.CodeValue, "endpoint", "expected %s.", jsonread.Or(Endpoints))
	case within == 0:
		f.Fail(jsonread.CodeValue, "completion_window", "expected a time such as 24h: minutes, hours or days, at most 30d.")
	}
	if o, ok := f.Object("metadata"); ok {
		r.Metadata = readMetadata(o)
		f.Adopt(o)
	}
	f.In("output_expires_after", func(o *jsonread.Fields) {
		anchor, seconds := "", 0
		o.OneOf("anchor", jsonread.CodeValue, &anchor, "created_at")
		if o.Int("seconds", &seconds, leastKeep, mostKeep) {
			r.Keep = int64(seconds)
		}
	})
	if err := fields.Finish(c); err != nil {
		return err
	}
	input, err := s.file(r.Owner, r.Input)
	switch {
	case errors.Is(err, errMissing) || err == nil && input.Purpose != purposeInput:
		return api.Invalid(jsonread.CodeValue, "input_file_id", "Invalid 'input_file_id': there is no file '%s' with the purpose 'batch'.", jsonread.Brief(r.Input))
	case err != nil:
		return err
	}
	s.mu.Lock()
	err = s.room(r.Owner)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	lines, err := s.check(c.Context(), &r, input)
	if err != nil {
		return err
	}
	kept, err := s.addBatch(r, lines, within)
	if err != nil {
		return err
	}
	return c.JSON(newBatchObject(kept))
}

func readMetadata(o *jsonread.Fields) map[string]string {
	pairs := map[string]string{}
	for _, name := range o.Unread() {
		name, value := strings.TrimPrefix(name, "metadata."), ""
		o.String(name, &value)
		if o.Err == nil && (len(name) > mostPairName || len(value) > mostPair || len(pairs) == mostPairs) {
			o.Fail(jsonread.CodeValue, name, "metadata has at most %d texts of %d bytes, with names of %d.", mostPairs, mostPair, mostPairName)
		}
		pairs[name] = value
	}
	return pairs
}

// errFaults says that a batch has more faults than it tells of.
var errFaults = errors.New("jobs: too many faults")

// check reads the lines of an input, and notes in r what is wrong with them.
func (s *folder) check(ctx context.Context, r *record, input *File) ([]line, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	content, err := s.read(input)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	seen := map[[sha256.Size]byte]bool{}
	fault := func(f Fault) error {
		if r.Faults = append(r.Faults, f); len(r.Faults) == mostFaults {
			return errFaults
		}
		return nil
	}
	n := 0
	lines, err := split(ctx, content, func(number int, text []byte) error {
		if n++; n > s.opt.Lines {
			r.Faults = append(r.Faults, Fault{Code: "too_many_requests", Message: fmt.Sprintf("A batch has at most %d requests.", s.opt.Lines)})
			return errFaults
		}
		if text == nil {
			return fault(Fault{Code: "line_too_long", Message: fmt.Sprintf("The line has more than %d bytes.", mostLine), Line: number})
		}
		q, err := formOf(r.Form).read(trim(text), r)
		var bad *jsonread.Error
		if errors.As(err, &bad) {
			code := bad.Code
			if code == jsonread.CodeJSON {
				code = "invalid_json_line"
			}
			return fault(Fault{Code: code, Message: errtext.Text(err), Param: bad.Param, Line: number})
		}
		sum := sha256.Sum256([]byte(q.custom))
		if seen[sum] {
			return fault(Fault{Code: "duplicate_custom_id", Message: "Another line has this custom_id: " + jsonread.Brief(q.custom), Param: "custom_id", Line: number})
		}
		seen[sum] = true
		return nil
	})
	if errors.Is(err, errFaults) {
		return nil, nil
	}
	if err == nil && n == 0 {
		r.Faults = append(r.Faults, Fault{Code: "empty_file", Message: "The input file has no requests."})
	}
	return lines, err
}

// showBatches answers GET /v1/batches, the newest first.
func (s openaiAPI) showBatches(c *api.Call) error {
	q := c.URL.Query()
	all, err := s.listBatches(owner(c), formOpenAI)
	if err != nil {
		return err
	}
	n, err := limit(q, 100)
	if err != nil {
		return err
	}
	part, more, err := page(all, recordID, q.Get("after"), false, n)
	if err != nil {
		return pageFault("after", q.Get("after"), err)
	}
	data := make([]batchObject, len(part))
	for i, r := range part {
		data[i] = newBatchObject(r)
	}
	return c.JSON(newList(data, func(b batchObject) string { return b.ID }, more))
}

func recordID(r *record) string { return r.ID }

// showBatch answers GET /v1/batches/{id}.
func (s openaiAPI) showBatch(c *api.Call) error {
	r, err := s.batch(owner(c), formOpenAI, id(c))
	if err != nil {
		return orMissing(c, "batch", err)
	}
	return c.JSON(newBatchObject(r))
}

// cancel answers POST /v1/batches/{id}/cancel.
func (s openaiAPI) cancel(c *api.Call) error {
	r, err := s.cancelBatch(owner(c), formOpenAI, id(c))
	if err != nil {
		return orMissing(c, "batch", err)
	}
	return c.JSON(newBatchObject(r))
}
