package responses

import (
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// Bounds on one request, besides those in jsonread and fields.
const (
	maxItems = 2048
	maxParts = 256     // of an item
	maxCalls = 1 << 20 // bytes of calls of tools
)

// readInput reads what is added to a conversation: a text, or a list of items. Without any
// before it is required.
func readInput(f *jsonread.Fields, before []*item, stored owned) (items []*item, c conversation) {
	items = slices.Clip(before)
	used := make(map[string]bool, len(before))
	for _, it := range before {
		c.add(it)
		used[it.ID] = true
	}
	c.bytes = 0
	add := func(it *item) {
		if used[it.ID] { // ids tell the items of a list apart
			again := *it
			again.ID = newID(it.Type)
			it = &again
		}
		used[it.ID] = true
		items = append(items, it)
		c.add(it)
	}
	raw, ok := f.Take("input")
	switch {
	case !ok:
	case jsonread.Kind(raw) == "a string":
		s, _ := jsonread.Text(raw)
		add(&item{ID: newID(itemMessage), Type: itemMessage, Status: completed, Role: fields.RoleUser, Content: []part{{Type: partInput, Text: &s}}})
	case jsonread.Kind(raw) == "a list":
		readItems(f, raw, stored, &c, add)
	default:
		f.WrongType("input", "a string or a list of items", raw)
	}
	if c.bytes > maxCalls {
		f.Fail(jsonread.CodeValue, "input", "its calls have %d bytes, at most %d are allowed.", c.bytes, maxCalls)
	}
	if len(items) == 0 {
		f.Fail(jsonread.CodeMissing, "input", "a text or a list of items is required.")
	}
	return items, c
}

// readItems reads a list of items and adds them to a conversation, which is c.
func readItems(f *jsonread.Fields, raw []byte, stored owned, c *conversation, add func(*item)) {
	for _, o := range f.EachOf("input", raw, maxItems) {
		it := readItem(o, stored)
		if o.Err == nil && (it.Type == itemOutput || it.Type == itemCustomOutput) && !c.ids[it.CallID] {
			o.Fail(jsonread.CodeValue, "call_id", "no call before has the id '%s'.", jsonread.Brief(it.CallID))
		}
		if o.Err == nil {
			add(it)
		}
	}
}

// readItem reads one item.
func readItem(f *jsonread.Fields, stored owned) *item {
	it := &item{Type: itemMessage}
	if f.Has("id") && !f.Has("role") {
		it.Type = itemReference
	}
	f.String("type", &it.Type)
	f.String("id", &it.ID)
	f.String("status", &it.Status)
	if it.Status != inProgress && it.Status != cutOff {
		it.Status = completed
	}
	switch it.Type {
	case itemMessage:
		readMessage(f, it)
	case itemCall:
		it.Arguments = new("")
		f.Text("arguments", it.Arguments)
		f.String("namespace", &it.Namespace)
		readCalled(f, it)
	case itemCustom:
		it.Input = new("")
		f.Text("input", it.Input)
		readCalled(f, it)
	case itemOutput, itemCustomOutput:
		f.String("call_id", &it.CallID)
		it.Output = new(text(readParts(f, "output", partInput, partInput, partText)))
	case itemReasoning:
		readThought(f, it)
	case itemCompaction:
		readCompaction(f, it)
	case itemReference:
		found, ok := stored.item(it.ID)
		if !ok {
			f.Fail(jsonread.CodeValue, "id", "there is no item '%s': it was not stored, or is no longer kept.", jsonread.Brief(it.ID))
			return it
		}
		return found
	default:
		f.Fail(jsonread.CodeUnsupported, "type", "this server does not read items of type '%s'.", jsonread.Brief(it.Type))
	}
	f.Ignore("created_by")
	f.Refuse("caller", "namespace")
	if it.ID == "" {
		it.ID = newID(it.Type)
	}
	return it
}

func readMessage(f *jsonread.Fields, it *item) {
	f.String("role", &it.Role)
	kind := partInput
	switch it.Role {
	case fields.RoleAssistant:
		kind = partText
	case fields.RoleUser, fields.RoleSystem, fields.RoleDeveloper:
	default:
		f.Fail(jsonread.CodeValue, "role", "expected user, assistant, system or developer, but got '%s'.", jsonread.Brief(it.Role))
		return
	}
	if it.Content = readParts(f, "content", kind, partInput, partText, "text", partRefusal); it.Content == nil {
		it.Content = []part{}
	}
	f.Ignore("annotations", "phase")
}

// readThought reads one. Clients that keep no text of it send what they were given
// to keep.
func readThought(f *jsonread.Fields, it *item) {
	it.Content, it.Summary = readParts(f, "content", partReasoning, partReasoning), readParts(f, "summary", partSummary, partSummary)
	if it.Summary == nil {
		it.Summary = []part{}
	}
	f.Text("encrypted_content", &it.Encrypted)
	if _, ok := readOpaque(it.Encrypted); !ok && it.Encrypted != "" {
		if text(it.Content) == "" && text(it.Summary) == "" {
			f.Fail(jsonread.CodeValue, "encrypted_content", "this server did not make it.")
		}
		it.Encrypted = ""
	}
}

// readCompaction reads what stands in the place of a conversation.
func readCompaction(f *jsonread.Fields, it *item) {
	it.Status = ""
	f.Text("encrypted_content", &it.Encrypted)
	if _, ok := readOpaque(it.Encrypted); !ok {
		f.Fail(jsonread.CodeValue, "encrypted_content", "this server did not make it.")
	}
}

// readCalled reads what calls of functions and of custom tools have both.
func readCalled(f *jsonread.Fields, it *item) {
	f.String("call_id", &it.CallID)
	if f.String("name", &it.Name); it.CallID == "" {
		f.Fail(jsonread.CodeMissing, "call_id", "it is required.")
	} else if it.Name == "" {
		f.Fail(jsonread.CodeMissing, "name", "it is required.")
	}
}

// readParts reads a text, or a list of parts of these types. Texts become parts of the type own.
func readParts(f *jsonread.Fields, field, own string, types ...string) []part {
	raw, ok := f.Take(field)
	if !ok {
		return nil
	}
	if s, ok := jsonread.Text(raw); ok {
		return []part{readPart(own, s)}
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(field, "a string or a list of parts", raw)
		return nil
	}
	list := []part{}
	for _, o := range f.EachOf(field, raw, maxParts) {
		var kind, text string
		if o.String("type", &kind); !slices.Contains(types, kind) {
			o.Fail(jsonread.CodeUnsupported, "type", "expected %s, but got '%s'.", strings.Join(types, " or "), jsonread.Brief(kind))
		}
		name := "text"
		if kind == partRefusal {
			name = kind
		}
		o.Text(name, &text)
		o.Ignore("annotations", "logprobs", "prompt_cache_breakpoint")
		if kind != partRefusal || own != partText {
			kind = own
		}
		list = append(list, readPart(kind, text))
	}
	return list
}

// readPart returns a part of a type that a request brings.
func readPart(kind, text string) part {
	p := newPart(itemMessage)
	switch p.Type = kind; kind {
	case partText:
		p.Text = &text
		return p
	case partRefusal:
		return part{Type: kind, Refusal: &text}
	}
	return part{Type: kind, Text: &text}
}
