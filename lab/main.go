// Lutra-lab measures, plans and converts models for Lutra. Run `lutra-lab --help`.
package main

import (
	"os"

	"github.com/lutra-lm/lutra/lab/commands"
)

func main() { os.Exit(commands.Main(os.Args[1:])) }
