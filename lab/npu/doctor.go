package npu

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/output"
)

// Finding is the result for one part of the device path.
type Finding struct {
	Part   string `json:"part"`
	Found  bool   `json:"found"`
	Detail string `json:"detail"`
	For    string `json:"for"` // what needs it
}

// Examine looks for what the device path needs. It starts tools to learn their
// versions, and opens no device: that a part is there does not say that it works.
func Examine(ctx context.Context) []Finding {
	list := []Finding{{"pure-Go device", true, "always there", "--backend hexagon-go, every test"}}
	add := func(part, use string, found bool, detail string) {
		list = append(list, Finding{part, found, detail, use})
	}
	tool := func(use string, name string, args ...string) {
		detail, err := firstLine(ctx, name, args...)
		if err != nil {
			detail = absent(err)
		}
		add(name, use, err == nil, detail)
	}
	tool("--backend hexagon-qemu: runs the HVX kernels", "qemu-hexagon", "--version")
	tool("building the HVX kernels", "clang-19", "--version")
	tool("building the HVX kernels", "ld.lld-19", "--version")
	tool("the check of their instructions", "llvm-objdump-19", "--version")

	built, detail := builtForFastRPC()
	add("FastRPC in this program", "--backend hexagon", built, detail)
	path, err := fastRPC()
	detail = path
	if err != nil {
		detail = absent(err)
	}
	add("libcdsprpc.so", "--backend hexagon: FastRPC to the DSP", err == nil, detail)
	found, detail := node("/dev/fastrpc-*")
	add("FastRPC device node", "--backend hexagon", found, detail)
	found, detail = unsignedPD()
	add("unsigned PD", "--backend hexagon without a signed skel", found, detail)
	found, detail = skels()
	add("skel library", "--backend hexagon: the code that runs on the DSP", found, detail)
	found, detail = node("/dev/dma_heap/system", "/dev/ion")
	add("shared memory", "--backend hexagon: rpcmem", found, detail)
	return list
}

func absent(err error) string {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "not found"
	}
	return output.OneLine(errtext.Text(err))
}

// firstLine returns the first line that a tool prints.
func firstLine(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			return output.Printable(line), nil
		}
	}
	return path, nil
}

// builtForFastRPC tells whether this program can load the library at all.
func builtForFastRPC() (bool, string) {
	const without = "built without -tags fastrpc"
	info, ok := debug.ReadBuildInfo()
	if !ok || runtime.GOOS != "linux" && runtime.GOOS != "android" {
		return false, without
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "fastrpc") {
			return true, "built with -tags fastrpc"
		}
	}
	return false, without
}

// fastRPC finds the vendor's library and checks that it is for this process.
func fastRPC() (string, error) {
	folders := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")),
		"/vendor/lib64", "/system/vendor/lib64", "/system/lib64", "/usr/lib64", "/usr/lib", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib")
	for _, folder := range folders {
		path := filepath.Join(folder, "libcdsprpc.so")
		f, err := elf.Open(path)
		if errors.Is(err, os.ErrNotExist) || folder == "" {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		machine := f.Machine
		f.Close()
		if want := map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64}[runtime.GOARCH]; machine != want {
			return "", fmt.Errorf("%s is for %v, this process runs on %s", path, machine, runtime.GOARCH)
		}
		return path, nil
	}
	return "", os.ErrNotExist
}

// node tells whether this user may open a device node, by its name or a pattern.
func node(patterns ...string) (bool, string) {
	detail := "not found"
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		for _, path := range paths {
			f, err := os.OpenFile(path, os.O_RDONLY, 0)
			if err == nil {
				f.Close()
				return true, path
			}
			detail = output.OneLine(errtext.Text(err))
		}
	}
	return false, detail
}

// unsignedPD tells whether unsigned code may run on the DSP: the unsecured node is for
// that, and only opening a session there would prove it.
func unsignedPD() (bool, string) {
	found, detail := node("/dev/fastrpc-cdsp")
	if !found {
		return false, detail
	}
	return true, detail + " may be opened; whether the firmware allows it shows when a session opens"
}

// skels finds the DSP's library where FastRPC looks for it.
func skels() (bool, string) {
	var folders []string
	for _, variable := range []string{"DSP_LIBRARY_PATH", "ADSP_LIBRARY_PATH"} {
		folders = append(folders, strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ';' || r == ':' })...)
	}
	if len(folders) == 0 {
		return false, "neither DSP_LIBRARY_PATH nor ADSP_LIBRARY_PATH is set"
	}
	for _, folder := range folders {
		if paths, err := filepath.Glob(filepath.Join(folder, "liblutra*.so")); err == nil && len(paths) > 0 {
			return true, paths[0]
		}
	}
	return false, "no liblutra*.so in " + output.OneLine(strings.Join(folders, ", "))
}

// PrintFindings writes what Examine found.
func PrintFindings(w io.Writer, list []Finding) error {
	rows := [][]string{{"part", "there", "detail", "needed for"}}
	for _, f := range list {
		there := "no"
		if f.Found {
			there = "yes"
		}
		rows = append(rows, []string{f.Part, there, f.Detail, f.For})
	}
	return output.Table(w, rows)
}
