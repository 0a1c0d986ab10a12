// Package mcp relays messages to servers of the Model Context Protocol, by its
// Streamable HTTP transport (modelcontextprotocol.io, specification of 2025-06-18).
//
//	page, MCP client ── /mcp/NAME ── Relay ── the URL that is configured for NAME
//
// The protocol is spoken at both ends: the relay reads no message, keeps no session and
// chooses no version. It goes to configured servers alone, with configured headers and with
// those of the protocol; nothing else that a client has sent reaches them. What it
// passes back is JSON or events, within bounds. Each server has places of its own, and a time to
// send something: one that hangs keeps its own clients waiting alone.
package mcp
