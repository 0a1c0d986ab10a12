package server

import (
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
)

// keyUsage holds a key's use since the start, and its limits.
type keyUsage struct {
	Object     string           `json:"object"`
	Key        string           `json:"key"`
	Requests   int64            `json:"requests"`
	Prompt     int64            `json:"prompt_tokens"`
	Completion int64            `json:"completion_tokens"`
	InFlight   int              `json:"requests_in_flight"`
	Refused    map[string]int64 `json:"refused"` // requests, by the limit
	Limits     keyLimits        `json:"limits"`
}

// keyLimits holds the limits of a key; null: there is none.
type keyLimits struct {
	Requests *rateLeft `json:"requests_per_minute"`
	Tokens   *rateLeft `json:"tokens_per_minute"`
	AtOnce   *int      `json:"max_requests"`
	Models   []string  `json:"models"`
}

// rateLeft is where a key stands with a limit.
type rateLeft struct {
	Limit     int   `json:"limit"`
	Remaining int   `json:"remaining"`
	Reset     int64 `json:"reset_ms"` // until all of it is there again
}

// usage answers GET /usage: what clients have had with each key since the server started.
func (a *admin) usage(c *api.Call) error {
	list, since := a.keys.Usage()
	data := make([]keyUsage, len(list))
	left := func(r *admission.Rate) *rateLeft {
		if r == nil {
			return nil
		}
		return &rateLeft{r.Limit, r.Remaining, r.Reset.Milliseconds()}
	}
	for i, u := range list {
		requests, tokens := u.Key.Rates()
		data[i] = keyUsage{Object: "usage", Key: u.Key.Name, Requests: u.Requests, Prompt: u.Prompt, Completion: u.Completion, InFlight: u.Running, Refused: u.Refused,
			Limits: keyLimits{Requests: left(requests), Tokens: left(tokens), Models: u.Key.Models}}
		if n := u.Key.AtOnce; n > 0 {
			data[i].Limits.AtOnce = &n
		}
	}
	return c.JSON(struct {
		Object string     `json:"object"`
		Since  int64      `json:"since"` // Unix time
		Data   []keyUsage `json:"data"`
	}{"list", since.Unix(), data})
}
