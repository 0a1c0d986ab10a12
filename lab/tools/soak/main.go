// Command soak sends a server of this checkout a mixture of requests, good, bad and broken off, and says
// what became of each, and whether the server is afterwards as before. Its status is 1 if not.
//
//	go run -C lab ./tools/soak -requests 1000000 -out ../soak.out
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/lutra-lm/lutra/lab/soak"
)

func main() {
	var opt soak.Options
	out, binary := "", ""
	flag.IntVar(&opt.Requests, "requests", 10000, "`N` requests")
	flag.DurationVar(&opt.For, "for", 0, "send requests for `TIME`, however many")
	flag.IntVar(&opt.Streams, "streams", 200, "`N` streams that are timed beside each kind of heavy requests")
	flag.DurationVar(&opt.Reload, "reload", 5*time.Second, "`TIME` between changes of a model's file, each with SIGHUP; 0: none")
	flag.IntVar(&opt.Clients, "clients", 48, "`N` of them at once")
	flag.Uint64Var(&opt.Seed, "seed", 1, "of the mixture")
	flag.DurationVar(&opt.Sample, "sample", time.Second, "`TIME` between looks at the server")
	flag.DurationVar(&opt.Patience, "patience", time.Minute, "`TIME` after which a request has not ended")
	flag.StringVar(&out, "out", "", "`FOLDER` for soak.csv and soak.svg")
	flag.StringVar(&binary, "lutra", "", "`FILE` of the program (default: built from the checkout)")
	flag.Parse()
	if err := run(opt, out, binary); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

var errFaults = errors.New("there are faults")

func run(opt soak.Options, out, binary string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if binary == "" {
		dir, err := os.MkdirTemp("", "lutra-soak-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "lutra")
		build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", binary, ".")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("in the folder of the laboratory: %v: %w", build, err)
		}
	}
	var err error
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	if opt.Reader, err = filepath.Abs("tts/embed/testdata/bert.gguf"); err != nil {
		return err
	}
	opt.Command, opt.Progress = []string{binary}, os.Stderr
	r, err := soak.Run(ctx, opt)
	if err != nil {
		return err
	}
	if err := r.Print(os.Stdout); err != nil {
		return err
	}
	if out != "" {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		for name, write := range map[string]func(io.Writer) error{"soak.csv": r.WriteCSV, "soak.svg": r.WriteSVG} {
			if err := writeFile(filepath.Join(out, name), write); err != nil {
				return err
			}
		}
	}
	if len(r.Faults) > 0 {
		return errFaults
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
