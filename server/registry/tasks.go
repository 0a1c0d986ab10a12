package registry

// task is what m does, in vLLM's words where it has any.
func (m *Model) task() string {
	switch {
	case m.Reward != nil:
		return "reward"
	case m.Embed != nil:
		return "embed"
	case m.Rank != nil:
		return "score"
	}
	return taskGenerate
}

const taskGenerate = "generate"

// Embedder is the model that a request for vectors asks for, by default the first that
// makes any; the *NotFoundError of a server without any has no name. The model may be
// none.
func (r *Registry) Embedder(name string) (*Model, error) {
	return r.findFirst(name, "embedding model", func(m *Model) bool { return m.Embed != nil })
}

// Ranker is the model that a request for scores of documents asks for, by default the
// first that is made for it, or else the first that embeds texts. As Embedder.
func (r *Registry) Ranker(name string) (*Model, error) {
	m, err := r.findFirst(name, "", func(m *Model) bool { return m.Rank != nil && m.Embed == nil })
	if err != nil {
		return r.Embedder(name)
	}
	return m, nil
}

// findFirst finds a model by its name or, without one, by what it does.
func (r *Registry) findFirst(name, wanted string, does func(*Model) bool) (*Model, error) {
	if name != "" && name != defaultName {
		m, _, err := r.Find(name)
		return m, err
	}
	for _, m := range r.Models {
		if does(m) {
			return m, nil
		}
	}
	return nil, &NotFoundError{Wanted: wanted}
}

// Judge is the reward model that a request asks for, by default the first; the
// *NotFoundError of a server without any has no name. The model may be none.
func (r *Registry) Judge(name string) (*Model, error) {
	return r.findFirst(name, "reward model", func(m *Model) bool { return m.Reward != nil })
}
