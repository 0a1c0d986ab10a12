package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// publishedFor writes a release for a system into a folder, and returns the address of a server of it.
func publishedFor(t *testing.T, on target) (dir, url string) {
	t.Helper()
	var made []artifact
	for _, p := range []program{lutra, laboratory} {
		b := sampleOf(t, p, on)
		b.binary = []byte("#!/bin/sh\necho " + p.name + "\n")
		a, err := archive(b)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, a...)
	}
	dir = filepath.Join(t.TempDir(), "dist")
	if err := write(dir, made); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return dir, server.URL
}

// shell is a machine on which install.sh runs: what uname says, and a home.
type shell struct {
	kernel, machine string
	home            string
	path            []string // before the system's
}

// install runs install.sh with a shell of POSIX, and returns what it says.
func (s shell) install(t *testing.T, base string, args ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	uname := "#!/bin/sh\ncase $1 in -s) echo '" + s.kernel + "' ;; -m) echo '" + s.machine + "' ;; *) echo GNU/Linux ;; esac\n"
	if s.kernel == "Android" {
		uname = strings.ReplaceAll(strings.ReplaceAll(uname, "'Android'", "Linux"), "GNU/Linux", "Android")
	}
	if err := os.WriteFile(filepath.Join(bin, "uname"), []byte(uname), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{filepath.Join("..", "..", "deploy", "install.sh")}, args...)...)
	cmd.Env = []string{"PATH=" + strings.Join(append(append([]string{bin}, s.path...), os.Getenv("PATH")), ":"), "HOME=" + s.home, "LUTRA_BASE_URL=" + base, "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for other systems")
	}
}

func TestTheScriptInstallsWhatAReleaseHas(t *testing.T) {
	needShell(t)
	for name, c := range map[string]struct {
		kernel, machine string
		on              target
	}{
		"Linux on Intel":   {"Linux", "x86_64", target{"linux", "amd64"}},
		"Linux on Arm":     {"Linux", "aarch64", target{"linux", "arm64"}},
		"macOS on Intel":   {"Darwin", "x86_64", target{"darwin", "amd64"}},
		"macOS on Apple's": {"Darwin", "arm64", target{"darwin", "arm64"}},
		"Android":          {"Android", "aarch64", target{"android", "arm64"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := publishedFor(t, c.on)
			to := filepath.Join(t.TempDir(), "a folder", "bin")
			s := shell{kernel: c.kernel, machine: c.machine, home: t.TempDir()}
			said, err := s.install(t, url+"/", "--to", to)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if names := names(t, to); !slices.Equal(names, []string{"lutra"}) {
				t.Errorf("%s holds %q", to, names)
			}
			if out, err := exec.Command(filepath.Join(to, "lutra")).Output(); err != nil || string(out) != "lutra\n" {
				t.Errorf("the program says %q, %v", out, err)
			}
			for _, want := range []string{"Installed " + to + "/lutra", to + " is not in PATH", `To remove it: rm "` + to + `/lutra"`} {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			s.path = []string{to} // again, beside the laboratory's
			if said, err = s.install(t, url, "--lab", "--to", to); err != nil || !strings.Contains(said, "/lutra-lab") || strings.Contains(said, "PATH") {
				t.Errorf("%v\n%s", err, said)
			}
			if names := names(t, to); !slices.Equal(names, []string{"lutra", "lutra-lab"}) {
				t.Errorf("%s holds %q", to, names)
			}
		})
	}
}

func TestTheScriptInstallsForItsUserAlone(t *testing.T) {
	needShell(t)
	if f, err := os.CreateTemp("/usr/local/bin", "lutra-may-write-"); err == nil {
		f.Close()
		os.Remove(f.Name())
		t.Skip("/usr/local/bin may be written to, and is not a test's to change")
	}
	_, url := publishedFor(t, target{"linux", "amd64"})
	s := shell{kernel: "Linux", machine: "x86_64", home: t.TempDir()}
	if said, err := s.install(t, url); err != nil || !strings.Contains(said, "Installed "+s.home+"/.local/bin/lutra") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestTheScriptInstallsNothingThatItCannotCheck(t *testing.T) {
	needShell(t)
	const name = "lutra-1.2.0-linux-amd64.tar.gz"
	intel := shell{kernel: "Linux", machine: "x86_64"}
	for what, c := range map[string]struct {
		shell
		spoil func(t *testing.T, dir, to string)
		args  []string
		want  string
	}{
		"another checksum": {intel, func(t *testing.T, dir, _ string) { replace(t, filepath.Join(dir, name), "else") }, nil, "has the SHA-256"},
		"another checksum of the second": {intel, func(t *testing.T, dir, _ string) {
			replace(t, filepath.Join(dir, "lutra-lab-1.2.0-linux-amd64.tar.gz"), "else")
		}, []string{"--lab"}, "has the SHA-256"},
		"no archive":              {intel, func(t *testing.T, dir, _ string) { remove(t, filepath.Join(dir, name)) }, nil, "cannot download"},
		"no checksums":            {intel, func(t *testing.T, dir, _ string) { remove(t, filepath.Join(dir, "SHA256SUMS")) }, nil, "cannot download"},
		"a page of errors":        {intel, func(t *testing.T, dir, _ string) { replace(t, filepath.Join(dir, "SHA256SUMS"), "<html>") }, nil, "does not name one archive of lutra for linux-amd64"},
		"a name with slash":       {intel, func(t *testing.T, dir, _ string) { edit(t, filepath.Join(dir, "SHA256SUMS"), name, "../"+name) }, nil, "does not name one archive"},
		"a folder that is a file": {intel, func(t *testing.T, _, to string) { replace(t, to, "") }, nil, "cannot write to"},
		"another system's":        {shell{kernel: "Linux", machine: "aarch64"}, nil, nil, "does not name one archive of lutra for linux-arm64"},
		"RISC-V":                  {shell{kernel: "Linux", machine: "riscv64"}, nil, nil, "no release for Linux on riscv64"},
		"FreeBSD":                 {shell{kernel: "FreeBSD", machine: "amd64"}, nil, nil, "no release for FreeBSD"},
		"Git's shell on Windows":  {shell{kernel: "MINGW64_NT-10.0-26100", machine: "x86_64"}, nil, nil, "winget"},
		"Android's emulator":      {shell{kernel: "Android", machine: "x86_64"}, nil, nil, "no release for Android on x86_64"},
		"an unknown flag":         {intel, nil, []string{"--everything"}, "unknown argument --everything"},
		"a flag without a value":  {intel, nil, []string{"--to", ""}, "--to needs a value"},
	} {
		t.Run(what, func(t *testing.T) {
			dir, url := publishedFor(t, target{"linux", "amd64"})
			to := filepath.Join(t.TempDir(), "bin")
			if c.spoil != nil {
				c.spoil(t, dir, to)
			}
			c.home = t.TempDir()
			said, err := c.install(t, url, append([]string{"--to", to}, c.args...)...)
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 1 || !strings.Contains(said, c.want) {
				t.Errorf("%v, want status 1 and %q\n%s", err, c.want, said)
			}
			if there, err := os.ReadDir(to); err == nil && len(there) > 0 {
				t.Errorf("%s holds %q", to, there)
			}
		})
	}
	t.Run("a folder without rights", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write everywhere")
		}
		_, url := publishedFor(t, target{"linux", "amd64"})
		to := t.TempDir()
		if err := os.Chmod(to, 0o500); err != nil {
			t.Fatal(err)
		}
		if said, err := (shell{kernel: "Linux", machine: "x86_64", home: t.TempDir()}).install(t, url, "--to", to); err == nil || !strings.Contains(said, "cannot write to "+to) {
			t.Errorf("%v\n%s", err, said)
		}
	})
}

// TestAScriptThatIsCutOffDoesNothing runs its beginnings, as a shell does with half of a download.
func TestAScriptThatIsCutOffDoesNothing(t *testing.T) {
	needShell(t)
	text, err := os.ReadFile("../../deploy/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
	for n := range lines {
		cmd := exec.Command("sh")
		cmd.Env, cmd.Dir = []string{"PATH=" + t.TempDir()}, t.TempDir() // no program is found
		cmd.Stdin = strings.NewReader(strings.Join(lines[:n], ""))
		var out strings.Builder
		cmd.Stdout = &out
		_ = cmd.Run() // an unfinished function is a mistake of syntax
		if there, err := os.ReadDir(cmd.Dir); err != nil || len(there) > 0 || out.Len() > 0 {
			t.Errorf("after %d lines: %q, %q, %v", n, there, out.String(), err)
		}
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		list = append(list, e.Name())
	}
	return list
}

func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, path, old, now string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, strings.ReplaceAll(string(text), old, now))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
