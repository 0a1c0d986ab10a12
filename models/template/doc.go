// Package template turns a conversation into the prompt text that a model was
// trained on, by the Jinja chat template that its file carries.
//
//	messages, tools ──┐
//	BOS, EOS, date  ──┴─Template.Render─▶ text, special tokens written out
//
// Templates come with model files and are not trusted: package jinja bounds
// the time and memory of a render and gives templates nothing but these
// variables. Templates see what Hugging Face transformers gives them:
// messages, tools, documents, add_generation_prompt, bos_token, eos_token,
// raise_exception, strftime_now and the tojson filter.
//
// The prompt must be encoded with special tokens parsed and, since templates
// write BOS themselves, without adding any.
package template
