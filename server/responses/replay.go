package responses

import (
	"iter"
	"slices"

	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// Response is a response as it was sent; nil: there is none.
func (o Owned) Response(id string) any {
	if r := o.find(id); r != nil {
		return &r.response
	}
	return nil
}

// Events yields the events of a response, those behind the number after, as they were
// sent when it was streamed; ok is false where there is no response.
func (o Owned) Events(id string, after int) (events iter.Seq[jsonwrite.Event], ok bool) {
	r := o.find(id)
	if r == nil {
		return nil, false
	}
	return func(yield func(jsonwrite.Event) bool) {
		for e := range r.events {
			if e.Data.(event).Number > after && !yield(e) {
				return
			}
		}
	}, true
}

// events yields all events: an encoder makes them anew.
func (r *record) events(yield func(jsonwrite.Event) bool) {
	s := &encoder{settings: &settings{encrypted: r.encrypted}, response: r.response, replayed: r.response.Output}
	p := &s.response
	p.Status, p.Output, p.Usage, p.CompletedAt, p.Incomplete, p.Error = inProgress, []*item{}, nil, nil, nil, nil
	send := func(v any) bool {
		switch v := v.(type) {
		case jsonwrite.Event:
			return yield(v)
		case jsonwrite.List:
			for i := range v {
				if !yield(v[i]) {
					return false
				}
			}
		}
		return true
	}
	if !send(s.opening()) {
		return
	}
	type position struct{ bytes, tokens int32 }
	at := make([]position, len(r.response.Output))
	for _, st := range r.steps {
		if st.item == keptAlive {
			if !send(s.KeepAlive()) {
				return
			}
			continue
		}
		it, from := r.response.Output[st.item], &at[st.item]
		piece := it.written()[from.bytes : from.bytes+st.bytes]
		var list jsonwrite.List
		switch it.Type {
		case itemCall, itemCustom:
			if len(p.Output) <= int(st.item) {
				list = s.beginCall(list, it.Type, it.CallID, it.Name)
			}
			list = s.writeCall(list, it.Type, piece)
		default:
			tokens := it.Content[0].Logprobs
			if tokens != nil {
				tokens = tokens[from.tokens : from.tokens+st.tokens]
			}
			list = s.write(list, it.Type, piece, tokens)
		}
		from.bytes, from.tokens = from.bytes+st.bytes, from.tokens+st.tokens
		if !send(list) {
			return
		}
	}
	var list jsonwrite.List
	if status := r.response.Status; status == completed || status == cutOff {
		list = s.close(list, status)
	}
	s.response, s.open = r.response, false
	send(append(list, s.ended()))
}

// Page is a part of a list of items, as it is asked for.
type Page struct {
	After      string // the id of the item before it; empty: from the beginning
	Limit      int
	Descending bool // the latest item comes first
}

// itemList is a page of items as clients read it.
type itemList struct {
	Object string  `json:"object"`
	Data   []*item `json:"data"`
	First  string  `json:"first_id"`
	Last   string  `json:"last_id"`
	More   bool    `json:"has_more"`
}

// InputItems is a page of the items that a response answers, those of the responses that
// it follows among them. known is false if there is no such response, ok if there is
// no item After in it.
func (o Owned) InputItems(id string, page Page) (list any, known, ok bool) {
	r := o.find(id)
	if r == nil {
		return nil, false, false
	}
	items := r.input
	if page.Descending {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	if page.After != "" {
		at := slices.IndexFunc(items, func(it *item) bool { return it.ID == page.After })
		if at < 0 {
			return nil, true, false
		}
		items = items[at+1:]
	}
	out := itemList{Object: "list", Data: items[:min(page.Limit, len(items))], More: len(items) > page.Limit}
	if n := len(out.Data); n > 0 {
		out.First, out.Last = out.Data[0].ID, out.Data[n-1].ID
	} else {
		out.Data = []*item{}
	}
	return out, true, true
}
