// Lutra among the local apps of Hugging Face's pages of models ("Use this model"), as
// packages/tasks/src/local-apps.ts of github.com/huggingface/huggingface.js has them. The function goes
// beside snippetLlamacpp, whose helpers it uses, and the entry into LOCAL_APPS.

const snippetLutra = (model: ModelData, filepath?: string): LocalAppSnippet[] => {
	const name = `hf:${model.id}${getQuantTag(filepath)}`;
	const content = [
		["# Talk to it in the terminal:", `lutra run ${name}`].join("\n"),
		["# Start a local server with a page and OpenAI's, Anthropic's and Ollama's API:", `lutra serve ${name}`].join("\n"),
		["# See whether it fits this machine:", `lutra info ${name} --fit`].join("\n"),
	];
	return [
		{
			title: "Install (macOS, Linux)",
			setup: "curl -fsSL https://github.com/lutra-lm/lutra/releases/latest/download/install.sh | sh",
			content,
		},
		{
			title: "Use pre-built binary",
			setup: ["# Download pre-built binary from:", "# https://github.com/lutra-lm/lutra/releases"].join("\n"),
			content,
		},
	];
};

	lutra: {
		prettyLabel: "Lutra",
		docsUrl: "https://github.com/lutra-lm/lutra",
		mainTask: "text-generation",
		displayOnModelPage: (model) => isLlamaCppGgufModel(model) && model.pipeline_tag === "text-generation",
		snippet: snippetLutra,
	},
