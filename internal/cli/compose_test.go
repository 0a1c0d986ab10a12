package cli

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeFile is deploy/compose.yaml, as far as the test knows the format: further keys are faults.
type composeFile struct {
	Services map[string]struct {
		Image, Build, Restart string
		Command, Ports        []string
		Volumes               []string
		Environment           map[string]string
		Grace                 string    `yaml:"stop_grace_period"`
		DependsOn             yaml.Node `yaml:"depends_on"`
	}
	Volumes map[string]any
}

// readYAML reads a file of deploy.
func readYAML(t *testing.T, into any, name ...string) {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{"..", "..", "deploy"}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%q: %v", name, err)
	}
}

func TestComposeStartsWhatIsThere(t *testing.T) {
	var c composeFile
	readYAML(t, &c, "compose.yaml")
	if len(c.Services) != 4 {
		t.Fatalf("%d services", len(c.Services))
	}
	ports, inside := map[string]bool{}, map[string]string{} // files and folders of services, and what they are here
	for name, s := range c.Services {
		if s.Image == "" || s.Restart == "" || len(s.Ports) != 1 || !strings.HasPrefix(s.Ports[0], "127.0.0.1:") || ports[s.Ports[0]] {
			t.Errorf("%s: image %q, restart %q, ports %q", name, s.Image, s.Restart, s.Ports)
		}
		ports[s.Ports[0]] = true
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			to = strings.TrimSuffix(to, ":ro")
			if !strings.HasPrefix(from, "./") {
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("%s: volume %s is not declared", name, from)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join("..", "..", "deploy", from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			inside[name+" "+to] = from
		}
		var before []string
		switch s.DependsOn.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(s.DependsOn.Content); i += 2 {
				before = append(before, s.DependsOn.Content[i].Value)
			}
		case yaml.SequenceNode:
			for _, n := range s.DependsOn.Content {
				before = append(before, n.Value)
			}
		}
		for _, b := range before {
			if _, ok := c.Services[b]; !ok {
				t.Errorf("%s waits for %s, which is no service", name, b)
			}
		}
	}

	serve := newServe()
	if args := c.Services["lutra"].Command; len(args) == 0 || args[0] != "serve" || serve.ParseFlags(args[1:]) != nil {
		t.Errorf("lutra is started with %q", args)
	}
	// Addresses are names of services with the ports that they have there.
	var p struct {
		Global map[string]string
		Rules  []string `yaml:"rule_files"`
		Scrape []struct {
			Job    string                       `yaml:"job_name"`
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, &p, "monitoring", "prometheus.yml")
	var source struct {
		Version     int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			Default                      bool `yaml:"isDefault"`
		}
	}
	readYAML(t, &source, "monitoring", "grafana", "datasource.yml")
	addresses := append(slices.Clone(p.Scrape[0].Static[0].Targets), source.Datasources[0].URL, c.Services["open-webui"].Environment["OPENAI_API_BASE_URL"])
	for _, a := range addresses {
		u, err := url.Parse("http://" + strings.TrimPrefix(a, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := c.Services[u.Hostname()]; !ok || !strings.HasSuffix(s.Ports[0], ":"+u.Port()) {
			t.Errorf("nobody listens at %s", a)
		}
	}
	if inside["prometheus "+"/etc/lutra"] != "./monitoring" || !slices.Contains(c.Services["prometheus"].Command, "--config.file=/etc/lutra/prometheus.yml") {
		t.Errorf("prometheus is started with %q", c.Services["prometheus"].Command)
	}
	var boards struct {
		Version   int `yaml:"apiVersion"`
		Providers []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	readYAML(t, &boards, "monitoring", "grafana", "dashboards.yml")
	if at := inside["grafana "+boards.Providers[0].Options.Path+"/lutra.json"]; at != "./monitoring/dashboard.json" {
		t.Errorf("Grafana finds %q in %s", at, boards.Providers[0].Options.Path)
	}
	t.Run("docker compose reads it", func(t *testing.T) {
		if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
			t.Skip("no docker compose")
		}
		if out, err := exec.CommandContext(t.Context(), "docker", "compose", "-f", "../../deploy/compose.yaml", "config", "--quiet").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
