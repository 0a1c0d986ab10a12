// Package cli is the composition root: it reads flags and configuration,
// picks the backend, builds models, engines and the server, and holds one file
// for each subcommand. Nothing below it knows how it was put together.
package cli
