package apiclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// Own asks a lutra server for what is beside OpenAI's API, at a path from the server's root: with
// POST where there is a body, which is sent as JSON. It returns the answer as it is.
func (c *Client) Own(ctx context.Context, key, path string, body any) ([]byte, error) {
	answer, err := c.open(ctx, key, path, body)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	bound := &bounded{ReadCloser: answer, left: maxListing}
	data, err := io.ReadAll(bound)
	if err != nil {
		return nil, Explain(strings.TrimSuffix(c.Base, "/v1")+path, err)
	}
	return data, nil
}

// Lines asks as Own does, and yields the lines of the answer without their ends as they come,
// however many there are.
func (c *Client) Lines(ctx context.Context, key, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		answer, err := c.open(ctx, key, path, nil)
		if err != nil {
			yield(nil, err)
			return
		}
		defer answer.Close()
		lines := bufio.NewScanner(answer)
		lines.Buffer(nil, mostLine)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, Explain(strings.TrimSuffix(c.Base, "/v1")+path, err))
		}
	}
}

// mostLine bounds a line of Lines, in bytes.
const mostLine = 1 << 20

// open asks, and returns the body of an answer that is no refusal. Nothing bounds it.
func (c *Client) open(ctx context.Context, key, path string, body any) (io.ReadCloser, error) {
	root := strings.TrimSuffix(c.Base, "/v1")
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, root+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, Explain(root, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	Bound(resp)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, Explain(root+path, err)
	}
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(data, &answer) == nil && answer.Error.Message != "" {
		return nil, Explain(root, &openai.APIError{HTTPStatusCode: resp.StatusCode, Message: answer.Error.Message})
	}
	return nil, Explain(root+path, &openai.RequestError{HTTPStatusCode: resp.StatusCode, Err: fmt.Errorf("status %s", resp.Status)})
}
