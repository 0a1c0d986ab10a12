// Lutra serves ultra-low-bit language models on ordinary CPUs behind an
// OpenAI-compatible API. Run `lutra --help`.
package main

import (
	"os"

	"github.com/lutra-lm/lutra/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
