// Package openapi describes the server's API in OpenAPI's words, from its routes and from what its readers ask of requests.
//
//	routes ──┐
//	requests.json ──Document──▶ /openapi.json
//	rows ────┘
//
// requests.json has the fields of each route's body, as the readers were heard to ask for them: a test of package server
// writes it. Rows are of sampling.Fields, fields.Sampled and scaling.Settings.
package openapi

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Field describes a field as its reader reads it, in JSON Schema's words; empty: it may be of several types.
type Field struct {
	Type  []string `json:"type,omitempty"`
	Items string   `json:"items,omitempty"` // of a list: the type of all
	Enum  []string `json:"enum,omitempty"`
	Least *float64 `json:"minimum,omitempty"`
	Most  *float64 `json:"maximum,omitempty"`
}

// Requests has the fields of bodies, by the route's path and by their own, such as "messages[].role".
type Requests map[string]map[string]Field

//go:embed requests.json
var recorded []byte

// Recorded returns the fields that were heard.
func Recorded() Requests {
	var r Requests
	if err := json.Unmarshal(recorded, &r); err != nil {
		panic(err) // a test reads it
	}
	return r
}

// Route is a method and a path of the server.
type Route struct {
	Method, Path string
	Open         bool // it needs no key
	Body         bool // it reads JSON
	Streams      bool // it may answer with events
}

// object is one of JSON's.
type object = map[string]any

// Document returns the description of the routes of a version of the program.
func Document(version string, routes []Route) []byte {
	requests, paths := Recorded(), object{}
	for _, r := range routes {
		path, parameters := pathOf(r.Path)
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.Method)] = operation(r, path, parameters, requests[r.Path])
	}
	out, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info":    object{"title": "Lutra", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths":   paths,
		"components": object{
			"schemas":         object{"Error": faultSchema()},
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []object{{"key": []string{}}, {}}, // a server may have no keys
	})
	if err != nil {
		panic(err) // texts and numbers
	}
	return out
}

func faultSchema() object {
	text := object{"type": []string{"string", "null"}}
	return object{"type": "object", "required": []string{"error"}, "properties": object{"error": object{
		"type": "object", "required": []string{"message", "type"},
		"properties": object{"message": object{"type": "string"}, "type": object{"type": "string"}, "param": text, "code": text},
	}}}
}

// parameter is a part of a path that a request chooses.
var parameter = regexp.MustCompile(`\{(\w+)\}`)

// pathOf returns a path as OpenAPI writes it, with its parameters.
func pathOf(path string) (string, []object) {
	path = strings.Replace(path, "*", "{name}", 1)
	var list []object
	for _, m := range parameter.FindAllStringSubmatch(path, -1) {
		list = append(list, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	return path, list
}

func operation(r Route, path string, parameters []object, body map[string]Field) object {
	answer := object{"application/json": object{}}
	if r.Streams {
		answer["text/event-stream"] = object{}
	}
	op := object{
		"operationId": strings.ToLower(r.Method) + strings.NewReplacer("/", "_", "{", "", "}", "", "-", "_", ".", "_").Replace(path),
		"responses": object{
			"200":     object{"description": "the answer", "content": answer},
			"default": object{"description": "a fault", "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}},
		},
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if r.Open {
		op["security"] = []object{}
	}
	if r.Body {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": schemaOf(body)}}}
	}
	return op
}

// schemaOf returns the schema of a body with these fields. Those that it does not name are ignored, or refused by name.
func schemaOf(body map[string]Field) object {
	root := object{"type": "object"}
	for path, f := range body {
		at, within := root, ""
		parts := strings.Split(path, ".")
		for i, part := range parts {
			name, lists := strings.CutSuffix(part, "[]")
			at = member(at, name)
			if within += name; i == len(parts)-1 && !lists {
				f.describe(at, within)
			}
			if lists {
				at = itemsOf(at)
			}
			within += "."
		}
	}
	if of, plans := body[api.ScalingField]; plans && len(of.Type) == 0 {
		for i := range scaling.Settings {
			s := &scaling.Settings[i]
			at := member(root, api.ScalingField)
			for part := range strings.SplitSeq(s.Key, ".") {
				at = member(at, part)
			}
			if at["description"] = s.Doc; s.Type() != "" {
				at["type"] = s.Type()
			}
			if len(s.Words) > 0 && s.Type() == "string" {
				at["enum"] = s.Words
			}
		}
	}
	return root
}

// member returns the schema of a property of an object.
func member(of object, name string) object {
	properties, ok := of["properties"].(object)
	if !ok {
		properties = object{}
		of["properties"] = properties
	}
	m, ok := properties[name].(object)
	if !ok {
		m = object{}
		properties[name] = m
	}
	return m
}

// itemsOf returns the schema of the items of a list.
func itemsOf(list object) object {
	items, ok := list["items"].(object)
	if !ok {
		items = object{}
		list["items"] = items
	}
	return items
}

// describe adds what is known of a field to its schema. path has no marks of lists.
func (f *Field) describe(schema object, path string) {
	switch len(f.Type) {
	case 0:
	case 1:
		schema["type"] = f.Type[0]
	default:
		schema["type"] = f.Type
	}
	if f.Items != "" {
		itemsOf(schema)["type"] = f.Items
	}
	if len(f.Enum) > 0 {
		schema["enum"] = f.Enum
	}
	if f.Least != nil {
		schema["minimum"] = *f.Least
	}
	if f.Most != nil {
		schema["maximum"] = *f.Most
	}
	if doc := documented[path]; doc != "" {
		schema["description"] = doc
	}
}

// documented has what rows say of fields, by their paths.
var documented = func() map[string]string {
	docs := map[string]string{}
	for i := range sampling.Fields {
		docs[sampling.Fields[i].Name] = sampling.Fields[i].Doc
	}
	for _, row := range fields.Sampled {
		docs[strings.Trim(row.Names, "`")] = row.Doc
	}
	return docs
}()
