// Package cli is the command line and the composition root: it reads flags and
// configuration, builds engines and the server, and holds one file for each
// subcommand. Nothing below it knows how it was put together.
package cli
