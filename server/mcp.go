package server

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/mcp"
)

// relayFactor is that of messages to servers of tools: they are passed on as they are.
const relayFactor = 2

// relayRoutes are those of the servers of tools that the operator names.
func (s *Server) relayRoutes() []api.Route {
	const path = "/mcp/{name}"
	return []api.Route{
		{Path: "/mcp", Answer: s.listTools},
		{Path: path, Factor: relayFactor, Apart: true, Answer: func(c *api.Call) error { return s.relay(c, c.Body.Source()) }},
		{Path: path, Method: http.MethodDelete, Answer: s.endSession},
	}
}

// relayMemory is the part of Options.MaxMemory that messages for servers of tools may hold.
const relayMemory = 0.25

// listTools answers with the names of the servers of tools.
func (s *Server) listTools(c *api.Call) error {
	type entry struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	data := []entry{}
	for _, name := range s.tools.Names() {
		data = append(data, entry{name, "mcp_server"})
	}
	return c.JSON(map[string]any{"object": "list", "data": data})
}

// relay passes a client's message to a server of tools.
func (s *Server) relay(c *api.Call, body []byte) error {
	m := &mcp.Message{Request: c.Request, Body: body, Key: c.Key.Owner(), Bytes: perRequest + relayFactor*int64(len(body))}
	return s.tools.Pass(chi.URLParam(c.Request, "name"), m, c.W, s.opt.WriteTimeout)
}

// sessionEnd is how long a server of tools may take to end a session.
const sessionEnd = 10 * time.Second

// endSession passes the end of a client's session on.
func (s *Server) endSession(c *api.Call) error {
	if err := s.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), sessionEnd)
	defer cancel()
	c.Request = c.WithContext(ctx)
	return s.relay(c, nil)
}
