// Wasmfuel makes a WebAssembly module count its own steps, so that a host can bound them: it reads
// a module from standard input and writes the metered one, compressed by gzip, to standard output.
//
// Each entry into a function and each turn of a loop takes 1 from the exported global
// "lutra_fuel", and each copy or fill of memory 1 more for every 64 bytes. Below 0 the module calls
// CALL, a function that it imports and that returns an i32, which refuels or ends it. So what a
// program costs depends on the program alone, on any machine.
//
//	go run -C lab ./tools/wasmfuel CALL < module.wasm > metered.wasm.gz
package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "wasmfuel CALL < module.wasm > metered.wasm.gz")
		os.Exit(2)
	}
	if err := run(os.Stdin, os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "wasmfuel:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, call string) error {
	module, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	metered, err := meter(module, call)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(metered); err != nil {
		return err
	}
	return z.Close()
}
