package test

import (
	"bufio"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// process runs a container's command as a process: with the program, the container's volumes
// and nothing else below its root folder, where it may not write, as the pod's user. Only the
// address differs, which is of this machine alone.
type process struct {
	root string
	spec *corev1.PodSpec
}

// imageEnv is what the Dockerfile sets.
func imageEnv(t *testing.T) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(read(t, "../../../Dockerfile"))
	if m == nil {
		t.Fatal("the Dockerfile sets no variables")
	}
	return strings.Fields(m[1])
}

func (p *process) command(t *testing.T, c *corev1.Container) *exec.Cmd {
	t.Helper()
	env := append(imageEnv(t), "POD_IP=127.0.0.1")
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	env = append(slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "LUTRA_SERVER_ADDR=") }), "LUTRA_SERVER_ADDR=127.0.0.1:0")
	user := p.spec.SecurityContext
	return &exec.Cmd{Path: "/lutra", Args: append([]string{"/lutra"}, c.Args...), Dir: "/", Env: env, SysProcAttr: &syscall.SysProcAttr{
		Chroot: p.root, Credential: &syscall.Credential{Uid: uint32(*user.RunAsUser), Gid: uint32(*user.RunAsGroup)}}}
}

// ownedBy gives root and a group all files below dir, with so many rights.
func ownedBy(t *testing.T, dir string, gid int, folders, files fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if err := os.Chown(path, 0, gid); err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, folders)
		}
		return os.Chmod(path, files)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheContainersRunAsThePodSays(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder")
	}
	models := hubtest.New(t)
	model, err := os.ReadFile("../../../models/embedded/lutra-tiny-s.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range hub.Catalogue() {
		models.Put(e.Ref.ID(), e.Ref.File, model)
	}
	r := render(t, "models: [{path: bonsai-1.7b, name: bonsai}]\nhuggingFace: {endpoint: '"+models.URL+"'}\ndrain: {lameDuckSeconds: 0}\nautoscaling: {enabled: true}\n"+
		"apiKeys: {keys: ['alice: a-key-of-some-length']}")
	pod := r.pod(t)
	p := &process{root: t.TempDir(), spec: &pod.Spec}
	build := exec.Command("go", "build", "-o", filepath.Join(p.root, "lutra"), ".")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.mount(t, p.root, &pod.Spec, r.server(t), nil)
	cache := filepath.Join(p.root, "models")
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	ownedBy(t, filepath.Join(p.root, "etc"), int(*pod.Spec.SecurityContext.FSGroup), 0o750, 0o640)
	for _, dir := range []string{p.root, filepath.Join(p.root, "etc")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	ownedBy(t, cache, int(*pod.Spec.SecurityContext.FSGroup), fs.ModeSetgid|0o770, 0o660)
	if len(pod.Spec.InitContainers) != 1 {
		t.Fatalf("%d init containers, want one", len(pod.Spec.InitContainers))
	}
	if out, err := p.command(t, &pod.Spec.InitContainers[0]).CombinedOutput(); err != nil {
		t.Fatalf("pull: %v\n%s", err, out)
	}
	asked := len(models.Requests())
	if asked == 0 {
		t.Fatal("nothing was downloaded")
	}
	ownedBy(t, cache, int(*pod.Spec.SecurityContext.FSGroup), 0o750, 0o640) // its mount is read-only now

	server := p.command(t, r.server(t))
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, said := false, ""
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said += lines.Text() + "\n"
		if m := regexp.MustCompile(`ready on ([0-9.]+:[0-9]+)`).FindStringSubmatch(lines.Text()); m != nil && !ready {
			ready = true
			p.asks(t, r, "http://"+m[1])
			_ = server.Process.Signal(syscall.SIGTERM) // Wait tells
		}
	}
	if err := server.Wait(); err != nil || !ready {
		t.Errorf("the server ends with %v\n%s", err, said)
	}
	if len(models.Requests()) != asked {
		t.Error("the server downloads what is there")
	}
}

// asks asks the running server what Kubernetes and others do.
func (p *process) asks(t *testing.T, r *release, base string) {
	t.Helper()
	ask := func(path, key string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(text)
	}
	c := r.server(t)
	for _, path := range []string{c.StartupProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, "/healthz", "/readyz"} {
		if status, text := ask(path, ""); status != http.StatusOK {
			t.Errorf("the probe %s is answered with %d: %s", path, status, text)
		}
	}
	if status, _ := ask("/v1/models", ""); status != http.StatusUnauthorized {
		t.Errorf("without a key the answer is %d", status)
	}
	if status, text := ask("/v1/models", "a-key-of-some-length"); status != http.StatusOK || !strings.Contains(text, `"bonsai"`) {
		t.Errorf("with a key the answer is %d: %s", status, text)
	}
	_, metrics := ask("/metrics", "")
	for _, m := range get[autoscalingv2.HorizontalPodAutoscaler](t, r, "HorizontalPodAutoscaler", "").Spec.Metrics {
		if !strings.Contains(metrics, "\n"+m.Pods.Metric.Name+"{") {
			t.Errorf("/metrics has no %s", m.Pods.Metric.Name)
		}
	}
	test := get[corev1.Pod](t, r, "Pod", "").Spec.Containers[0]
	if want := "http://r-lutra:8080"; test.Args[len(test.Args)-1] != want {
		t.Errorf("the test asks %v, want %s", test.Args, want)
	}
	test.Args[len(test.Args)-1] = base
	if out, err := p.command(t, &test).CombinedOutput(); err != nil {
		t.Errorf("helm test: %v\n%s", err, out)
	}
}
