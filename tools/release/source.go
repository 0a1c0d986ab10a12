package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	ownModule   = "github.com/lutra-lm/lutra"
	projectPage = "https://" + ownModule
	summary     = "Serve ultra-low-bit language models on ordinary CPUs"
)

// source is the commit that a release is built from.
type source struct {
	root    string // folder of the checkout
	commit  string
	time    time.Time // of the commit
	version version
	// androidCC is a C compiler of the Android NDK; empty: Android's program is built without C.
	androidCC string
}

// version is a release's, or made of a commit that is none.
type version struct {
	core     string // 1.2.0
	rc       string // number of a release candidate; empty: it is none
	snapshot string // 20261126021048-d989953c1234; empty: a release
}

var releaseName = regexp.MustCompile(`^v(\d{1,9}\.\d{1,9}\.\d{1,9})(?:-rc\.(\d{1,9}))?$`)

// parseVersion reads v1.2.0 or v1.2.0-rc.1.
func parseVersion(s string) (version, error) {
	m := releaseName.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("-version: %q is not of the form v1.2.0 or v1.2.0-rc.1", s)
	}
	return version{core: m[1], rc: m[2]}, nil
}

// String returns the version as Go, npm and nfpm write it, without a v.
func (v version) String() string {
	switch {
	case v.snapshot != "":
		return v.core + "-" + v.snapshot // Go's pseudo-version
	case v.rc != "":
		return v.core + "-rc." + v.rc
	}
	return v.core
}

// python returns the version as PEP 440 has it.
func (v version) python() string {
	switch {
	case v.snapshot != "":
		date, commit, _ := strings.Cut(v.snapshot, "-")
		return v.core + ".dev" + date + "+g" + commit
	case v.rc != "":
		return v.core + "rc" + v.rc
	}
	return v.core
}

// sourceOf asks Git for the commit that is checked out here.
func sourceOf(name string) (source, error) {
	var s source
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return s, err
	}
	commit, err := git("show", "-s", "--format=%H %ct", "HEAD")
	if err != nil {
		return s, err
	}
	hash, seconds, _ := strings.Cut(commit, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, err
	}
	s = source{root: root, commit: hash, time: time.Unix(unix, 0).UTC()}
	s.version = version{core: "0.0.0", snapshot: s.time.Format("20060102150405") + "-" + hash[:12]}
	if name != "" {
		if s.version, err = parseVersion(name); err != nil {
			return s, err
		}
		changed, err := git("status", "--porcelain")
		if err == nil && changed != "" {
			err = fmt.Errorf("-version: the checkout has changes that no commit holds:\n%s", changed)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// system returns the environment and the tags of go build for a target. Android's libraries, of which FastRPC's is one, are
// loaded by C alone.
func system(t target, androidCC string) (env []string, tags string) {
	env = []string{"GOOS=" + t.os, "GOARCH=" + t.arch}
	if t.os == "android" && androidCC != "" {
		return append(env, "CGO_ENABLED=1", "CC="+androidCC), "fastrpc"
	}
	return append(env, "CGO_ENABLED=0"), ""
}

// build returns a program for a target. go build keeps what has not changed.
func build(s source, p program, t target) ([]byte, error) {
	dir, err := os.MkdirTemp("", "lutra-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, t.binary(p))
	env, tags := system(t, s.androidCC)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags="+tags,
		fmt.Sprintf("-ldflags=-s -w -X %[1]s.release=v%[2]s -X '%[1]s.built=%[3]s of %[4]s'", ownModule+"/internal/cli", s.version, s.commit, s.time.Format(time.RFC3339)), "-o", path, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(s.root, p.module), os.Stdout, os.Stderr
	// Levels are the lowest: kernels ask the CPU what it has.
	cmd.Env = append(append(os.Environ(), env...), "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build of %s for %s: %w", p.name, t, err)
	}
	return os.ReadFile(path)
}
