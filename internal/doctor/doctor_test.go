package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/lutra-lm/lutra/internal/hub"
	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
)

// system is a file system of one-line files.
func system(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return m
}

func TestWhatLinuxTellsIsRead(t *testing.T) {
	var m Machine
	m.read(system(map[string]string{
		"proc/cpuinfo":                                          "processor\t: 0\nmodel name\t: Cortex-A76\n",
		"proc/meminfo":                                          "MemTotal: 100 kB\nSwapTotal:        2048 kB\nSwapFree:         1024 kB",
		"proc/self/cgroup":                                      "0::/",
		"sys/fs/cgroup/cpu.max":                                 "150000 100000",
		"sys/fs/cgroup/memory.max":                              "4096",
		"sys/devices/system/cpu/present":                        "0-3,8",
		"sys/devices/system/node/has_memory":                    "0-1",
		"sys/kernel/mm/transparent_hugepage/enabled":            "always madvise [never]",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":  "powersave",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver":    "acpi-cpufreq",
		"sys/devices/system/cpu/cpufreq/boost":                  "0",
		"sys/devices/system/cpu/intel_pstate/something_unknown": "1",
	}))
	want := Machine{Processor: "Cortex-A76", Logical: 5, Quota: 1.5, Limit: 4096, Nodes: 2, Swap: 2 << 20, SwapUsed: 1 << 20, HugePages: "never",
		Governor: "powersave", Driver: "acpi-cpufreq", Turbo: "off"}
	if got, want := fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("the machine is\n%s, want\n%s", got, want)
	}
}

func TestWhatMakesNoSenseIsLeftOut(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing": nil,
		"nonsense": {
			"proc/cpuinfo": "model name : \x1b[31mred", "proc/meminfo": "SwapTotal: -5 kB\nSwapFree: 99999999999999999999 kB", "sys/devices/system/cpu/present": "3-0",
			"sys/devices/system/node/has_memory": "0-99999999", "sys/kernel/mm/transparent_hugepage/enabled": "[sometimes]",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "\x07", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": strings.Repeat("x", 1000),
			"sys/devices/system/cpu/cpufreq/boost": "2",
		},
	} {
		var m Machine
		m.read(system(files))
		if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", Machine{}) {
			t.Errorf("of %s the machine is %+v", name, m)
		}
	}
}

func FuzzNoFileOfTheSystemPanics(f *testing.F) {
	f.Add("0-3,8", "SwapTotal: 1 kB", "a [madvise] b")
	f.Fuzz(func(t *testing.T, list, memory, line string) {
		var m Machine
		m.read(system(map[string]string{"proc/cpuinfo": memory, "proc/meminfo": memory, "sys/devices/system/cpu/present": list, "sys/devices/system/node/has_memory": list,
			"sys/kernel/mm/transparent_hugepage/enabled": line, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": line}))
		if m.Logical < 0 || m.Logical > most || m.SwapUsed < 0 || strings.ContainsAny(m.Driver+m.Processor, "\x1b\n") {
			t.Errorf("the machine is %+v", m)
		}
	})
}

// sound is a machine of which there is nothing to say.
func sound() Machine {
	return Machine{OS: "linux", Arch: "amd64", ISA: "avx2", Best: "avx2", Threads: 4, Logical: 8, Affinity: 8, Memory: 8 << 30, Free: 4 << 30, HugePages: "madvise",
		Governor: "performance", Turbo: "on", Files: 1 << 20, Clock: time.Unix(2e9, 0)}
}

func TestEachFaultIsFoundWithWhatToDo(t *testing.T) {
	setting := Setting{Connections: 4096, Least: 64 << 20, Built: time.Unix(2e9, 0), Address: Address{Addr: "127.0.0.1:8080"}}
	for _, c := range []struct {
		what   string
		change func(*Machine, *Setting)
		level  Level
		run    string
	}{
		{"", func(*Machine, *Setting) {}, Good, ""},
		{"", func(m *Machine, _ *Setting) { m.Governor, m.Driver = "powersave", "intel_pstate" }, Good, ""},
		{"", func(_ *Machine, s *Setting) { s.Address.Serves = true }, Good, ""},
		{"", func(m *Machine, _ *Setting) { m.Files = math.MaxUint64 }, Good, ""},
		{"instructions", func(m *Machine, _ *Setting) { m.ISA = "generic" }, Slow, "unset LUTRA_KERNEL"},
		{"instructions", func(m *Machine, _ *Setting) { m.ISA, m.Best = "generic", "generic" }, Slow, ""},
		{"", func(m *Machine, _ *Setting) { m.NoTiles = "the system grants no tiles" }, Good, ""},
		{"CPU quota", func(m *Machine, _ *Setting) { m.Quota = 2.5 }, Slow, "docker update --cpus 3 CONTAINER"},
		{"memory", func(m *Machine, _ *Setting) { m.Free = 1 << 20 }, Stops, ""},
		{"swap", func(m *Machine, _ *Setting) { m.Swap, m.SwapUsed = 4<<30, 2<<30 }, Slow, "sudo sysctl vm.swappiness=1"},
		{"huge pages", func(m *Machine, _ *Setting) { m.HugePages = "never" }, Slow, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"},
		{"governor", func(m *Machine, _ *Setting) { m.Governor = "powersave" }, Slow, "sudo cpupower frequency-set -g performance"},
		{"turbo", func(m *Machine, _ *Setting) { m.Turbo, m.Driver = "off", "intel_pstate" }, Slow, "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"},
		{"open files", func(m *Machine, _ *Setting) { m.Files = 1024 }, Slow, "ulimit -n 4160"},
		{"open files", func(m *Machine, _ *Setting) { m.Files = 10 }, Stops, "ulimit -n 4160"},
		{"code in answers", func(m *Machine, _ *Setting) { m.Interprets = true }, Slow, ""},
		{"clock", func(m *Machine, _ *Setting) { m.Clock = time.Unix(1e9, 0) }, Slow, "sudo timedatectl set-ntp true"},
		{"address", func(_ *Machine, s *Setting) { s.Address.Err = errors.New("in use") }, Stops, "lutra serve --addr 127.0.0.1:8081"},
		{"models", func(_ *Machine, s *Setting) { s.Models.Err = fs.ErrPermission }, Slow, "export HF_HOME=/path/to/folder"},
		{"kept kernels", func(_ *Machine, s *Setting) { s.Choices.Err = fs.ErrPermission }, Slow, "export XDG_CACHE_HOME=/path/to/folder"},
	} {
		m, s := sound(), setting
		s.Models.Path, s.Choices.Path = "/models", "/choices"
		c.change(&m, &s)
		r := Report{Machine: &m, Findings: m.Check(s)}
		found := 0
		for _, f := range r.Findings {
			if f.Level == Good {
				continue
			}
			if found++; f.What != c.what || f.Level != c.level || f.Run != c.run || f.Do == "" {
				t.Errorf("%s: %+v, want %s, %q", c.what, f, c.level, c.run)
			}
		}
		if want := min(len(c.what), 1); found != want || r.Stops() != (c.level == Stops) {
			t.Errorf("%q: %d faults, want %d; Stops() = %v", c.what, found, want, r.Stops())
		}
		var out bytes.Buffer
		if err := r.Print(&out); err != nil || !strings.Contains(out.String(), c.run) || strings.Contains(out.String(), "nothing to change") != (c.what == "") {
			t.Errorf("%q: prints %v\n%s", c.what, err, &out)
		}
	}
}

func TestAFolderIsTriedWhereItWouldBeMade(t *testing.T) {
	dir := t.TempDir()
	if f := LookAt(filepath.Join(dir, "a", "b")); f.Err != nil {
		t.Error(f.Err)
	}
	if f := LookAt(filepath.Join(dir, "x\x00y")); f.Err == nil {
		t.Error("a name that cannot be is a folder")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left behind: %v", left, err)
	}
	if f := LookAt(""); f.Err == nil {
		t.Error("no folder can be written to")
	}
}

func TestAnAddressThatOthersHaveStopsUnlessAServerIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	for _, serves := range []bool{true, false} {
		a := Try(addr, func() bool { return serves })
		if a.Serves != serves || (a.Err == nil) != serves {
			t.Errorf("serves %v: %+v", serves, a)
		}
		if f := a.finding(); (f.Level == Stops) == serves || strings.Count(f.Says, addr) != 1 {
			t.Errorf("serves %v: %+v", serves, f)
		}
	}
	if a := Try("127.0.0.1:0", func() bool { return false }); a.Err != nil {
		t.Error(a.Err)
	}
}

func TestSpeedsFollowFromBytesAndRates(t *testing.T) {
	s := Speed{ReadAll: 10, Rates: []Rate{{"I2", 2, 100, 200}, {"F16", 16, 50, 60}}}
	e := hub.Entry{Name: "m", Storage: "I2_S", Layers: 4e9, OutputIn: "F16", Output: 1e9, Memory: 100}
	list, err := s.Expect([]hub.Entry{e, {Name: "judge", Format: "prm"}}, 99)
	if err != nil || len(list) != 1 {
		t.Fatalf("Expect() = %v, %v", list, err)
	}
	// Layers read 1 GB in 0.1 s and compute 0.04 s; the output reads 2 GB in 0.2 s and computes 0.02 s.
	if x := list[0]; math.Abs(x.Decode-1/(0.12+0.21)) > 1e-9 || math.Abs(x.Prompt-0.8*50) > 1e-9 || x.Fits {
		t.Errorf("Expect() = %+v", x)
	}
	e.Storage = "unheard of"
	if _, err := s.Expect([]hub.Entry{e}, 99); err == nil {
		t.Error("a storage type without a rate has a speed")
	}
}

func TestModelsOfTheCatalogueHavePackings(t *testing.T) {
	for _, e := range hub.Catalogue() {
		for _, storage := range []string{e.Storage, e.OutputIn} {
			if _, ok := packings[storage]; !ok {
				t.Errorf("%s: storage type %s has no packing here", e.Name, storage)
			}
		}
	}
}

func TestAReportHasNoFigureThatIsNotOne(t *testing.T) {
	r, err := Examine(Setting{}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if r.Speed, err = measure(64<<20, time.Millisecond, time.Microsecond); err != nil {
		t.Fatal(err)
	}
	if r.Expected, err = r.Speed.Expect(hub.Catalogue(), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil || len(r.Kernels) != len(kernelbench.Choices()) || len(r.Expected) < 15 {
		t.Errorf("%+v: %v", r, err)
	}
	for _, x := range r.Expected {
		if !(x.Decode > 0 && x.Prompt > 0 && x.Fits) {
			t.Errorf("%+v", x)
		}
	}
	for v, want := range map[float64]string{0.04: "0.0", 9.94: "9.9", 45.6: "46", 123: "120", 1251: "1300"} {
		if got := figure(v); got != want {
			t.Errorf("figure(%v) = %s, want %s", v, got, want)
		}
	}
}
