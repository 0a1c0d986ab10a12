// Lutra serves ultra-low-bit language models on ordinary CPUs behind an
// OpenAI-compatible API. Run `lutra --help`.
package main

import (
	"embed"
	"os"

	"github.com/lutra-lm/lutra/internal/cli"
)

// documents are README.md and what its links lead to, which the server shows under /docs.
//
//go:embed README.md CHANGELOG.md CONTRIBUTING.md config.yaml
//go:embed docs/*.md docs/*.svg docs/*.png docs/adr/*.md docs/data/*.md
//go:embed docs/examples/*.py docs/examples/*.mjs docs/examples/*.txt docs/examples/package.json docs/examples/goopenai/main.go
//go:embed deploy/helm/lutra/README.md tools/train/README.md
//go:embed models/testdata/huggingface/README.md models/testdata/transformers/README.md tts/search/testdata/README.md
var documents embed.FS

func main() { os.Exit(cli.Main(os.Args[1:], documents)) }
