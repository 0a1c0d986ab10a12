// Package huggingface makes of a model's directory, as Hugging Face's transformers saves it,
// what llama.cpp's converter would: a gguf.File with its keys, names, orders and signs.
//
//	config.json, generation_config.json ──▶ ARCH.* keys
//	tokenizer.json, tokenizer_config.json ─▶ tokenizer.ggml.* keys
//	chat_template.jinja ──────────────────▶ tokenizer.chat_template
//	*.safetensors ────────────────────────▶ tensors, still in their files
//
// Weights stay in the files. They get GGUF's orders and types row by row as they are read. So
// the loader of models, which knows GGUF alone, and a conversion (gguf.Write of the same File)
// see the same bits. Storage types stay; ternary weights with one scale become I2_S, vectors
// F32.
//
// The differences between architectures are data: a row of architectures. Every file is assumed
// hostile. Its size and numbers have bounds. A key or tensor that is not known, and would change
// a model's results, is refused by its name.
package huggingface
