package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// Own asks a lutra server for what is beside OpenAI's API, at a path from the server's root: with
// POST where there is a body, which is sent as JSON. It returns the answer as it is.
func (c *Client) Own(ctx context.Context, key, path string, body any) ([]byte, error) {
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
	resp, err := doer{}.Do(req)
	if err != nil {
		return nil, Explain(root, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, Explain(root+path, err)
	}
	if resp.StatusCode == http.StatusOK {
		return data, nil
	}
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(data, &answer) == nil && answer.Error.Message != "" {
		return nil, Explain(root, &openai.APIError{HTTPStatusCode: resp.StatusCode, Message: answer.Error.Message})
	}
	return nil, Explain(root+path, &openai.RequestError{HTTPStatusCode: resp.StatusCode, Err: fmt.Errorf("status %s", resp.Status)})
}
