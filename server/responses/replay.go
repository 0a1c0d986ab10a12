package responses

import (
	"slices"

	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// events yields all events: an encoder makes them anew.
func (r *record) events(yield func(jsonwrite.Event) bool) {
	s := &encoder{settings: &settings{encrypted: r.encrypted}, response: r.response, replayed: r.response.Output}
	p := &s.response
	p.Status, p.Output, p.Usage, p.CompletedAt, p.Incomplete, p.Error, p.Scaling = inProgress, []*item{}, nil, nil, nil, nil, nil
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
				list = s.beginCall(list, it.Type, it.CallID, it.Namespace, it.Name)
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

// itemList is a page of items as clients read it.
type itemList struct {
	Object string  `json:"object"`
	Data   []*item `json:"data"`
	First  string  `json:"first_id"`
	Last   string  `json:"last_id"`
	More   bool    `json:"has_more"`
}

// page returns at most limit items, those that come after the item of an id, or the first;
// ok is false if there is no such item.
func page(items []*item, after string, limit int, descending bool) (out itemList, ok bool) {
	if descending { // the latest comes first
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	if after != "" {
		at := slices.IndexFunc(items, func(it *item) bool { return it.ID == after })
		if at < 0 {
			return out, false
		}
		items = items[at+1:]
	}
	out = itemList{Object: "list", Data: items[:min(limit, len(items))], More: len(items) > limit}
	if n := len(out.Data); n > 0 {
		out.First, out.Last = out.Data[0].ID, out.Data[n-1].ID
	} else {
		out.Data = []*item{}
	}
	return out, true
}
