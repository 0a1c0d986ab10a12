package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// These tests stand in for Docker, which test machines lack: they read the Dockerfile,
// run its commands into a folder, and what docs/serving.md tells to run there, with that
// folder as the root, the image's user and environment and nothing else, in a network of
// its own.

// containerIP is the container's address in its network.
const containerIP = "192.0.2.2"

// image is what the last stage of a Dockerfile says.
type image struct {
	root                  string
	env                   []string
	uid, gid              uint32
	entrypoint, cmd, test []string
	volume, port          string
}

// instructions are the lines of a Dockerfile, continued ones in one.
func instructions(t *testing.T) (list [][2]string) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			word, rest, _ := strings.Cut(line, " ")
			list = append(list, [2]string{word, strings.TrimSpace(rest)})
		}
	}
	return list
}

func buildImage(t *testing.T) *image {
	t.Helper()
	im := &image{root: t.TempDir()}
	words := func(text string) (list []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return list
	}
	stages, run := 0, ""
	for _, in := range instructions(t) {
		switch what := in[1]; in[0] {
		case "FROM":
			if stages++; stages == 2 && what != "scratch" {
				t.Fatalf("the image begins with %s: the test knows scratch", what)
			}
		case "RUN":
			run = what
			if stages == 2 {
				t.Errorf("RUN %s in an image without a shell", what)
			}
		case "COPY":
			if stages == 2 && what != "--from=build /image /" {
				t.Fatalf("COPY %s: the test knows --from=build /image /", what)
			}
		case "ENV":
			im.env = append(im.env, strings.Fields(what)...)
		case "USER":
			if _, err := fmt.Sscanf(what, "%d:%d", &im.uid, &im.gid); err != nil || im.uid == 0 {
				t.Fatalf("USER %s: want numbers, and not root's", what)
			}
		case "VOLUME":
			im.volume = what
		case "EXPOSE":
			im.port = what
		case "HEALTHCHECK":
			_, command, _ := strings.Cut(what, " CMD ")
			im.test = words(command)
		case "ENTRYPOINT":
			im.entrypoint = words(what)
		case "CMD":
			im.cmd = words(what)
		}
	}
	// Other flags would compile everything anew, for the same program.
	run = strings.NewReplacer("-trimpath ", "", "/image", im.root).Replace(run)
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		t.Skip("this machine has no certificates to copy")
	}
	if out, err := exec.Command("sh", "-euc", run).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", run, err, out)
	}
	if err := os.Chmod(im.root, 0o755); err != nil {
		t.Fatal(err)
	}
	return im
}

// ownNetwork gives this thread, and the processes that it starts, a network of their own,
// in which this machine has containerIP.
func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network of its own for the container: %v", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	for name, request := range map[string]func(*unix.Ifreq) error{
		"lo": func(r *unix.Ifreq) error {
			r.SetUint16(unix.IFF_UP)
			return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
		},
		"lo:1": func(r *unix.Ifreq) error {
			if err := r.SetInet4Addr([]byte{192, 0, 2, 2}); err != nil {
				return err
			}
			return unix.IoctlIfreq(s, unix.SIOCSIFADDR, r)
		},
	} {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = request(r)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// host is where docker is called.
type host struct {
	im      *image
	dir     string            // the working folder
	env     map[string]string // variables
	mounted string            // name of the volume at the image's; empty: none
}

// container is what one docker run starts.
type container struct {
	im       *image
	env      []string
	args     []string
	uid, gid uint32
	port     string // in the container
	volume   string // name of that at the image's; empty: one of its own
}

// run reads the arguments of docker run.
func (h *host) run(t *testing.T, line string) *container {
	t.Helper()
	c := &container{im: h.im, uid: h.im.uid, gid: h.im.gid, port: h.im.port,
		env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=container", "HOME=/"}, h.im.env...)}
	words := strings.Fields(strings.NewReplacer(`"`, "", "$PWD", h.dir).Replace(line))
	for i := 0; i < len(words); i++ {
		value := func() string { i++; return words[i] }
		switch words[i] {
		case "--user":
			if _, err := fmt.Sscanf(value(), "%d:%d", &c.uid, &c.gid); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case "--name", "--stop-timeout":
			value()
		case "-d", "--rm":
		case "-p":
			_, c.port, _ = strings.Cut(value(), ":")
		case "-e":
			name, v, given := strings.Cut(value(), "=")
			if !given {
				v = h.env[name]
			}
			c.env = slices.DeleteFunc(c.env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
			c.env = append(c.env, name+"="+v)
		case "-v":
			parts := strings.Split(value(), ":")
			switch {
			case parts[1] == h.im.volume:
				c.volume = parts[0]
			default:
				if err := os.CopyFS(filepath.Join(h.im.root, parts[1]), os.DirFS(parts[0])); err != nil && !errors.Is(err, os.ErrExist) {
					t.Fatal(err)
				}
			}
		case "lutra":
			c.args = words[i+1:]
			if len(c.args) == 0 {
				c.args = h.im.cmd
			}
			h.mount(t, c)
			return c
		default:
			t.Fatalf("docker run %s: the test does not know %s", line, words[i])
		}
	}
	t.Fatalf("docker run %s names no image", line)
	return nil
}

// mount puts the container's volume in its place: a new one has what the image has there.
func (h *host) mount(t *testing.T, c *container) {
	t.Helper()
	at := filepath.Join(h.im.root, h.im.volume)
	kept := func(volume string) string { return filepath.Join(h.dir, "volume-"+volume) }
	info, err := os.Stat(at)
	if err == nil && h.mounted != "" {
		err = os.Rename(at, kept(h.mounted))
	} else if err == nil {
		err = os.RemoveAll(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.mounted = c.volume
	if c.volume != "" && os.Rename(kept(c.volume), at) == nil {
		return
	}
	if err := errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, info.Mode())); err != nil {
		t.Fatal(err)
	}
}

// command is a command line in the container.
func (c *container) command(line []string) *exec.Cmd {
	cmd := &exec.Cmd{Path: line[0], Args: line, Dir: "/", Env: c.env}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.im.root, Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid}}
	return cmd
}

// does runs a container's command to its end.
func (c *container) does() (string, error) {
	out, err := c.command(slices.Concat(c.im.entrypoint, c.args)).CombinedOutput()
	return string(out), err
}

// health is the image's health check; from is where else a server is asked: empty: there.
func (c *container) health(from string) error {
	line := c.im.test
	if from != "" {
		line = []string{c.im.entrypoint[0], "health", "--url", from}
	}
	if out, err := c.command(line).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// serves starts the container's server and calls do when it is ready.
func (c *container) serves(t *testing.T, do func()) {
	t.Helper()
	cmd := c.command(slices.Concat(c.im.entrypoint, c.args))
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, said := false, ""
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said += lines.Text() + "\n"
		if !ready && strings.Contains(lines.Text(), "ready on ") {
			ready = true
			do()
			_ = cmd.Process.Signal(os.Interrupt) // Wait tells
		}
	}
	if err := cmd.Wait(); err != nil || !ready {
		t.Errorf("%q ends with %v\n%s", c.args, err, said)
	}
}

var dockerBlock = regexp.MustCompile("(?s)```sh\n(docker build .*?)\n```")

func TestAContainerIsReachedAndHealthyAsTheDocumentsRunIt(t *testing.T) {
	sweep.Full(t)
	if testing.Short() {
		t.Skip("builds the program")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder")
	}
	clienttest.Programs(t, "sh", "install") // the image is built with them
	text, err := os.ReadFile("docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	m := dockerBlock.FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/serving.md shows no docker build")
	}
	im := buildImage(t)
	ownNetwork(t)
	model, err := os.ReadFile("models/embedded/lutra-tiny-s.gguf")
	if err != nil {
		t.Fatal(err)
	}
	models := hubtest.New(t)
	for _, e := range hub.Catalogue() {
		models.Put(e.Ref.ID(), e.Ref.File, model)
	}
	h := &host{im: im, dir: t.TempDir(), env: map[string]string{"LUTRA_SERVER_API_KEYS": "a-key-of-some-length"}}
	im.env = append(im.env, "HF_ENDPOINT="+models.URL)
	if err := os.WriteFile(filepath.Join(h.dir, "model.gguf"), model, 0o644); err != nil { //nolint:gosec // for the container's user
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(string(m[1]), "\\\n", ""), "\n")
	if lines[0] != "docker build -t lutra ." || len(lines) < 4 {
		t.Fatalf("the block is %q", lines)
	}
	for _, line := range lines[1:] {
		args, ok := strings.CutPrefix(line, "docker run ")
		if !ok {
			t.Errorf("the test does not know %s", line)
			continue
		}
		c := h.run(t, args)
		if err := c.health(""); err == nil {
			t.Fatalf("%s: healthy before it runs", line)
		}
		if c.args[0] != "serve" {
			if out, err := c.does(); err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
			continue
		}
		c.serves(t, func() {
			if err := c.health(""); err != nil {
				t.Errorf("%s: the health check says %v", line, err)
			}
			if err := c.health("http://" + containerIP + ":" + c.port); err != nil {
				t.Errorf("%s: from elsewhere: %v", line, err)
			}
		})
	}
	asked := len(models.Requests())
	again := h.run(t, "-v lutra-models:/models lutra serve --model bonsai-1.7b")
	again.serves(t, func() {})
	if len(models.Requests()) != asked || asked == 0 {
		t.Error("a model is downloaded again into its volume")
	}
	for _, user := range []string{"65532:65532", "1000:1000", "0:0"} {
		if out, err := h.run(t, "--user "+user+" lutra pull bonsai-1.7b").does(); err != nil || !strings.HasPrefix(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:], "/models/hub/") {
			t.Errorf("as %s: pull: %v\n%s", user, err, out)
		}
	}
	deaf := h.run(t, "-e LUTRA_SERVER_ADDR=127.0.0.1:8080 lutra serve")
	deaf.serves(t, func() {
		if err := deaf.health("http://" + containerIP + ":8080"); err == nil {
			t.Error("a server on the container's loopback is reached from elsewhere: the test tells nothing")
		}
	})
}

func TestTheBuildOfTheImageGetsAllThatItReads(t *testing.T) {
	text, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			patterns = append(patterns, line)
		}
	}
	ignored := func(name string) bool {
		for ; name != "."; name = path.Dir(name) {
			if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
				return true
			}
		}
		return false
	}
	for name, want := range map[string]bool{".git": true, ".git/config": true, "docs/api.md": false, "my.gguf": true, "go.mod": false, "go.sum": false, "main.go": false} {
		if ignored(name) != want {
			t.Errorf("%s is ignored: %v, want %v", name, !want, want)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, p := range builtPackages(t) {
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles) {
			files = append(files, filepath.Join(p.Dir, name))
		}
	}
	if len(files) < 100 {
		t.Fatalf("the program has %d files: the test has lost sight of them", len(files))
	}
	for _, file := range files {
		if name, err := filepath.Rel(here, file); err != nil || ignored(name) {
			t.Errorf(".dockerignore keeps %s from the build: %v", name, err)
		}
	}
}
