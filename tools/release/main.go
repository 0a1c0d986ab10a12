// Release makes the files that others install Lutra from, and publishes nothing. It is a
// module of its own: its libraries are none of the server's.
//
//	go run . -o dist -version v1.2.0 -targets linux/amd64,darwin/arm64
//
//	commit ─▶ go build a target ─▶ lutra ─▶ archive, with manual, completion, SBOM
//	                            │         ├▶ deb, rpm, apk   (Linux)
//	                            │         ├▶ wheel, npm's package
//	                            └▶ lutra-lab ▶ archive, with manual, completion, SBOM
//	                            all targets ▶ container image, npm's package that chooses,
//	                                        recipes of Homebrew, winget, Nix, install.sh
//	                                      └▶ SHA256SUMS of all
//
// The same commit, Go and version give the same bytes, wherever and whenever it runs: paths
// are trimmed, and every time is the commit's.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.out, "o", "dist", "`FOLDER` to write to; it must be empty or not exist")
	flag.StringVar(&o.version, "version", "", "`VERSION` such as v1.2.0 or v1.2.0-rc.1 (default: one made of the commit)")
	flag.StringVar(&o.targets, "targets", "", "`OS/ARCH` that are built, with commas (default: all)")
	flag.StringVar(&o.androidCC, "android-cc", "", "C `COMPILER` of the Android NDK: Android's program can then use a phone's NPU")
	bare := flag.Bool("bare", false, "build the program lutra alone, OS-ARCH/lutra, and pack nothing")
	flag.Parse()
	what := run
	if *bare {
		what = programs
	}
	if err := what(&o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options holds the flags of these names.
type options struct{ out, version, targets, androidCC string }

// read returns the source and the targets, unless the folder out holds something.
func (o *options) read() (source, []target, error) {
	targets, err := choose(o.targets)
	if err != nil {
		return source{}, nil, err
	}
	if there, err := os.ReadDir(o.out); err == nil && len(there) > 0 {
		return source{}, nil, fmt.Errorf("%s is not empty", o.out)
	}
	src, err := sourceOf(o.version)
	src.androidCC = o.androidCC
	return src, targets, err
}

// programs builds lutra for the targets, in a folder of out for each.
func programs(o *options) error {
	src, targets, err := o.read()
	if err != nil {
		return err
	}
	for _, t := range targets {
		binary, err := build(src, lutra, t)
		if err != nil {
			return err
		}
		dir := filepath.Join(o.out, t.os+"-"+t.arch)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t.binary(lutra)), binary, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// run makes all files of the targets in out.
func run(o *options) error {
	src, targets, err := o.read()
	if err != nil {
		return err
	}
	var made []artifact
	var bundles []bundle
	for _, t := range targets {
		fmt.Println("building", t)
		b, err := bundleOf(src, lutra, t)
		if err != nil {
			return err
		}
		bundles = append(bundles, b)
		for _, form := range forms {
			if !form.fits(t) {
				continue
			}
			a, err := form.pack(b)
			if err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			made = append(made, a...)
		}
		instruments, err := bundleOf(src, laboratory, t)
		if err != nil {
			return err
		}
		a, err := archive(instruments)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		made = append(made, a...)
	}
	for _, whole := range wholes {
		a, err := whole(bundles, made)
		if err != nil {
			return err
		}
		made = append(made, a...)
	}
	return write(o.out, made)
}

// bundleOf builds a program for a target.
func bundleOf(src source, p program, t target) (bundle, error) {
	common, err := commonFiles(src, p)
	if err != nil {
		return bundle{}, err
	}
	binary, err := build(src, p, t)
	if err != nil {
		return bundle{}, err
	}
	bom, err := sbom(src, p, t, binary)
	return bundle{src, p, t, binary, bom, common}, err
}

// write writes the files and SHA256SUMS, which sha256sum -c reads.
func write(out string, made []artifact) error {
	// Not before: a folder that Git does not know would make the checkout a changed one.
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, a := range made {
		if err := os.WriteFile(filepath.Join(out, a.name), a.data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(a.data), a.name)
		fmt.Printf("%9.1f MB  %s\n", float64(len(a.data))/1e6, a.name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
