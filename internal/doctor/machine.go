package doctor

import (
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/internal/cgroup"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Machine describes the machine in the system's own figures; unknown ones are zero.
type Machine struct {
	OS        string   `json:"os"`
	Arch      string   `json:"arch"`
	Processor string   `json:"processor,omitempty"`
	Features  []string `json:"features"`           // instructions that kernels are written for
	ISA       string   `json:"isa"`                // instruction set in use
	Best      string   `json:"best_isa"`           // without LUTRA_KERNEL
	NoTiles   string   `json:"no_tiles,omitempty"` // why the tiles of a processor with AMX are not used

	Threads  int     `json:"threads"`             // that serve computes with
	Logical  int     `json:"logical_cpus"`        // of the machine
	Affinity int     `json:"affinity,omitempty"`  // logical processors that this process may run on
	Quota    float64 `json:"cpu_quota,omitempty"` // processors' time that its control group may use
	Nodes    int     `json:"memory_nodes,omitempty"`
	Governor string  `json:"governor,omitempty"`
	Driver   string  `json:"governor_driver,omitempty"`
	Turbo    string  `json:"turbo,omitempty"` // on or off

	Memory    int64  `json:"memory"`                 // bytes, of the machine or its container
	Limit     int64  `json:"memory_limit,omitempty"` // of its control group
	Free      int64  `json:"free"`
	Swap      int64  `json:"swap"`
	SwapUsed  int64  `json:"swap_used"`
	HugePages string `json:"huge_pages,omitempty"` // always, madvise or never

	Interprets bool `json:"interprets_webassembly,omitempty"` // since the system lets no program make code

	Files uint64    `json:"files,omitempty"` // that the process may have open
	Clock time.Time `json:"clock"`
}

// Look asks the system.
func Look() *Machine {
	m := &Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Processor: processor(), Features: features(), ISA: cpu.Active().String(), NoTiles: cpu.NoAMX,
		Threads: cpu.Cores(), Logical: runtime.NumCPU(), Affinity: affinity(), Memory: memory.Physical(), Free: memory.Free(),
		Interprets: !sandbox.Compiles(), Files: fileLimit(), Clock: time.Now()}
	all := cpu.Supported()
	m.Best = all[len(all)-1].String()
	if runtime.GOOS == "linux" || runtime.GOOS == "android" {
		m.read(os.DirFS("/"))
	}
	return m
}

// features are the instructions that matter here, of those that the processor has.
func features() []string {
	list := []string{}
	for _, f := range []cpuid.FeatureID{cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.AVXVNNI, cpuid.GFNI, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VNNI, cpuid.AVX512VBMI, cpuid.AMXINT8,
		cpuid.ASIMD, cpuid.ASIMDDP, cpuid.ASIMDHP} {
		if cpuid.CPU.Supports(f) {
			list = append(list, f.String())
		}
	}
	return list
}

// most of a list that a file holds is read.
const most = 1 << 12

// read adds what a Linux root file system tells.
func (m *Machine) read(root fs.FS) {
	if m.Processor == "" {
		m.Processor = value(root, "proc/cpuinfo", "model name")
	}
	if n := listed(word(root, "sys/devices/system/cpu/present")); n > 0 {
		m.Logical = n
	}
	m.Quota = cgroup.CPUs(root)
	m.Limit, _, _ = cgroup.Memory(root)
	m.Nodes = listed(word(root, "sys/devices/system/node/has_memory"))
	m.Swap = kilobytes(root, "SwapTotal")
	m.SwapUsed = max(0, m.Swap-kilobytes(root, "SwapFree"))
	m.HugePages = chosen(word(root, "sys/kernel/mm/transparent_hugepage/enabled"), "always", "madvise", "never")
	const frequency = "sys/devices/system/cpu/cpu0/cpufreq/"
	m.Governor = known(word(root, frequency+"scaling_governor"), "performance", "powersave", "ondemand", "conservative", "schedutil", "userspace")
	m.Driver = word(root, frequency+"scaling_driver")
	if !plain(m.Driver) {
		m.Driver = ""
	}
	for file, off := range map[string]string{"sys/devices/system/cpu/intel_pstate/no_turbo": "1", "sys/devices/system/cpu/cpufreq/boost": "0"} {
		if w := word(root, file); w == "0" || w == "1" {
			if m.Turbo = "on"; w == off {
				m.Turbo = "off"
			}
		}
	}
}

// text returns the beginning of a file; nothing where there is none.
func text(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return ""
	}
	return string(data)
}

func word(root fs.FS, name string) string { return strings.TrimSpace(text(root, name)) }

// value returns what the first line "key: value" of a file says.
func value(root fs.FS, name, key string) string {
	for line := range strings.Lines(text(root, name)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			if v = strings.TrimSpace(v); plain(v) {
				return v
			}
		}
	}
	return ""
}

// kilobytes reads "key: n kB" of /proc/meminfo, in bytes.
func kilobytes(root fs.FS, key string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(value(root, "proc/meminfo", key), " kB"), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n << 10
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(line string, words ...string) string {
	_, after, _ := strings.Cut(line, "[")
	w, _, _ := strings.Cut(after, "]")
	return known(w, words...)
}

func known(w string, words ...string) string {
	if slices.Contains(words, w) {
		return w
	}
	return ""
}

// plain reports whether a name may be printed as it is.
func plain(s string) bool {
	return len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// listed counts the numbers of a list such as "0-3,8"; 0 where it is none.
func listed(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if err == nil && ranged {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo < 0 || hi < lo || hi >= most {
			return 0
		}
		n += hi - lo + 1
	}
	return min(n, most)
}
