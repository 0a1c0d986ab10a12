// Package huggingface makes of a model's directory, as Hugging Face's transformers saves it,
// what llama.cpp's converter would: a gguf.File with its keys, names, orders and signs.
//
//	config.json, generation_config.json ──▶ ARCH.* keys
//	tokenizer.json, tokenizer_config.json ─▶ tokenizer.ggml.* keys
//	chat_template.jinja ──────────────────▶ tokenizer.chat_template
//	*.safetensors ────────────────────────▶ tensors, still in their files
//
// Weights stay in the files. What a GGUF file has in another order or type is made as it is
// read, row by row, so that the loader of models, which knows GGUF alone, and a
// conversion (gguf.Write of the same File) see the same bits. Storage types are those of
// the files; ternary weights with one scale become I2_S, vectors F32.
//
// What differs between architectures is data: a row of architectures. Every file is assumed
// hostile: its size is bounded, numbers have bounds, and what would change a model's
// results and is not known is refused with the name of the key or tensor.
package huggingface
