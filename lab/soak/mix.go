package soak

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// way is a client's way to take its answer.
type way uint8

const (
	whole    way = iota
	streamed     // as server-sent events or lines
	left         // the client goes, before or while it is answered
	slow         // by a connection of small buffers, with pauses
)

// The keys of the server's clients.
const (
	free   = "soak-key-of-one-without-limits"
	rated  = "soak-key-of-one-with-a-rate"
	narrow = "soak-key-of-one-request-at-once"
	admin  = "soak-key-of-the-operator"
	nobody = "soak-key-that-is-not-known"
)

const keyFile = `free: ` + free + `
rated: ` + rated + ` requests_per_minute=120 tokens_per_minute=20000
narrow: ` + narrow + ` max_requests=1
operator: ` + admin + ` admin
`

// kind is a sort of request. Some must be refused, others may be: of limited keys, and of all where the
// server is full.
type kind struct {
	name   string
	weight int // of their sum
	path   string
	key    string
	way    way
	bad    bool // it must be refused
	body   func(r *rand.Rand) any
}

const (
	chats   = "/v1/chat/completions"
	message = "/v1/messages"
	ollama  = "/api/chat"
)

type object = map[string]any

// raw is a body as it is sent.
type raw []byte

// kinds are the mixture.
var kinds = []kind{
	{"chat", 22, chats, free, whole, false, func(r *rand.Rand) any { return chat(r, nil) }},
	{"stream", 22, chats, free, streamed, false, func(r *rand.Rand) any { return chat(r, object{"stream": true}) }},
	{"completion", 6, "/v1/completions", free, whole, false, func(r *rand.Rand) any {
		return object{"model": generator(r), "prompt": question(r), "max_tokens": few(r), "seed": r.Int32()}
	}},
	{"anthropic stream", 4, message, free, streamed, false, func(r *rand.Rand) any { return chat(r, object{"stream": true}) }},
	{"ollama", 4, ollama, free, streamed, false, func(r *rand.Rand) any {
		return object{"model": generator(r), "messages": turn(r), "options": object{"num_predict": few(r)}}
	}},
	{"search", 3, chats, free, whole, false, func(r *rand.Rand) any {
		methods := []object{{"method": "best_of_n", "n": 2}, {"method": "self_consistency", "n": 3}, {"method": "beam_search", "n": 2, "width": 2}}
		return chat(r, object{"test_time_scaling": methods[r.IntN(len(methods))]})
	}},
	{"tools", 3, chats, free, whole, false, func(r *rand.Rand) any {
		parameters := object{"type": "object", "properties": object{"n": object{"type": "integer"}}, "required": []string{"n"}}
		return chat(r, object{"tools": []any{object{"type": "function", "function": object{"name": "count", "parameters": parameters}}}, "tool_choice": "required", "max_tokens": 16})
	}},
	{"schema", 5, chats, free, whole, false, func(r *rand.Rand) any {
		schema := object{"type": "object", "properties": object{"a": object{"enum": []int{r.IntN(50), 50}}}, "required": []string{"a"}, "additionalProperties": false}
		return chat(r, object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "s", "schema": schema}}, "max_tokens": 16})
	}},
	{"embeddings", 6, "/v1/embeddings", free, whole, false, func(r *rand.Rand) any {
		return object{"model": reader, "input": []string{question(r), question(r)}}
	}},
	{"rewards", 2, "/v1/rewards", free, whole, false, func(r *rand.Rand) any {
		return object{"model": "lutra-tiny-prm", "messages": turn(r), "responses": []string{"12*7=84.\nAnswer: 84"}}
	}},
	{"leaver", 10, chats, free, left, false, func(r *rand.Rand) any {
		return chat(r, object{"stream": r.IntN(4) > 0, "max_tokens": 24, "ignore_eos": true, "n": 1 + r.IntN(2)})
	}},
	{"slow reader", 1, chats, free, slow, false, func(r *rand.Rand) any {
		return chat(r, object{"stream": true, "max_tokens": 16, "ignore_eos": true, "n": 3})
	}},
	{"bad input", 5, chats, free, whole, true, badBody},
	{"unknown key", 1, chats, nobody, whole, true, func(r *rand.Rand) any { return chat(r, nil) }},
	{"rated key", 2, chats, rated, whole, false, func(r *rand.Rand) any { return chat(r, nil) }},
	{"narrow key", 2, chats, narrow, streamed, false, func(r *rand.Rand) any { return chat(r, object{"stream": true}) }},
	{"receipt", 2, chats, free, whole, false, func(r *rand.Rand) any { return chat(r, object{"receipt": "hash"}) }},
	{"receipt leaver", 1, chats, free, left, false, func(r *rand.Rand) any { return chat(r, object{"receipt": "hash"}) }},
	{"swapped model", 2, chats, free, whole, false, func(r *rand.Rand) any { return chat(r, object{"model": swapped, "receipt": "hash"}) }},
	{"long text", 1, "/tokenize", free, whole, false, longText},
	{"hostile schema", 1, chats, free, whole, false, func(r *rand.Rand) any { return checked(r, hostileSchemas[r.IntN(len(hostileSchemas))]()) }},
	{"hostile check", 1, chats, free, whole, false, func(r *rand.Rand) any { return checked(r, hostileTests[r.IntN(len(hostileTests))]) }},
}

// swapped is the name of the model whose file changes while the server runs.
const swapped = "swapped"

// heavy are the kinds of requests beside which a stream is measured: all are allowed, and each costs much.
var heavy = []string{"search", "schema", "long text", "receipt", "hostile schema", "hostile check"}

// longText is a text that takes a place beside the engine to be read.
func longText(r *rand.Rand) any {
	return object{"model": generator(r), "prompt": strings.Repeat("A box holds 12 eggs. ", 2300+r.IntN(100))}
}

// checked is a search whose candidates, which are programs and JSON, are checked.
func checked(r *rand.Rand, verify object) object {
	return chat(r, object{"guided_choice": []string{"0", "1", "2", "3"}, "test_time_scaling": object{"method": "best_of_n", "n": 4, "verify": verify}})
}

// hostileSchemas are small to send and, to whoever takes them as they are, large to compile or to check.
var hostileSchemas = []func() object{
	func() object {
		var parts []any
		for range 2000 {
			parts = append(parts, object{"pattern": `^\p{L}{900}$`})
		}
		return object{"json_schema": object{"allOf": parts}}
	},
	func() object {
		var parts []any
		for range 1000 {
			parts = append(parts, object{"maximum": json.RawMessage("7.1e999990")})
		}
		return object{"json_schema": object{"allOf": parts}}
	},
	func() object {
		return object{"json_schema": object{"$defs": object{"a": object{"anyOf": []any{object{"$ref": "#/$defs/a"}, object{"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}}
	},
}

// hostileTests are code whose single calls cost much more than the steps around them say.
var hostileTests = []object{
	{"language": "python", "tests": []string{"a = [(i * 7919) % 500009 for i in range(500000)]\na.sort()\nassert a[0] >= 0"}},
	{"language": "python", "tests": []string{"while True:\n    list(reversed(bytes(1000000)))"}},
	{"language": "python", "tests": []string{"import time\nwhile True:\n    time.time()"}},
	{"language": "javascript", "tests": []string{"for (;;) { new Array(1e6).fill(1).sort() }"}},
	{"language": "javascript", "tests": []string{"let s = 'x'; for (;;) { s += s; s = s.slice(0, 1e6) }"}},
}

// reader is the name of the model that makes vectors.
const reader = "reader"

func generator(r *rand.Rand) string {
	if r.IntN(8) == 0 {
		return "lutra-tiny-l"
	}
	return "lutra-tiny-s"
}

func few(r *rand.Rand) int { return 1 + r.IntN(8) }

// question is one of many, of a few words or, now and then, of hundreds; a part of them begin alike.
func question(r *rand.Rand) string {
	text := fmt.Sprintf("What is %d * %d?", r.IntN(40), r.IntN(20))
	if r.IntN(40) == 0 {
		text = strings.Repeat("A box holds 12 eggs. ", 1+r.IntN(40)) + text
	}
	return text
}

func turn(r *rand.Rand) []any { return []any{object{"role": "user", "content": question(r)}} }

// chat is a chat of a few tokens, with further fields.
func chat(r *rand.Rand, more object) object {
	body := object{"model": generator(r), "messages": turn(r), "max_tokens": few(r)}
	for key, value := range more {
		body[key] = value
	}
	return body
}

// badBody is one that no server may answer.
func badBody(r *rand.Rand) any {
	bad := []any{
		raw(`{"messages": [`),
		raw(`[]`),
		raw("{\"messages\": \"\xff\"}"),
		chat(r, object{"model": "nothing"}),
		chat(r, object{"max_tokens": -1}),
		chat(r, object{"temperature": "hot"}),
		chat(r, object{"n": 1 << 20}),
		chat(r, object{"messages": []any{}}),
		chat(r, object{"messages": []any{object{"role": "user", "content": strings.Repeat("eggs ", 4000)}}}),
		chat(r, object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "s", "schema": object{"type": 7}}}}),
		chat(r, object{"test_time_scaling": object{"method": "guess", "n": 4}}),
		chat(r, object{"audio": object{"voice": "any"}}),
	}
	return bad[r.IntN(len(bad))]
}

// draw chooses a kind by weight.
func draw(r *rand.Rand) *kind {
	sum := 0
	for i := range kinds {
		sum += kinds[i].weight
	}
	at := r.IntN(sum)
	for i := range kinds {
		if at -= kinds[i].weight; at < 0 {
			return &kinds[i]
		}
	}
	panic("soak: weights do not add up")
}
