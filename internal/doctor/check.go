package doctor

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/sandbox"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Good  Level = "good"
	Slow  Level = "change" // it serves, and better after a change
	Stops Level = "stops"  // a server could not serve
)

// Finding is the result of a check.
type Finding struct {
	What  string `json:"what"`
	Level Level  `json:"level"`
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"` // what to change, in words
	Run   string `json:"run,omitempty"`
}

// Setting holds what the server to be started needs of the machine.
type Setting struct {
	Connections int       // that it accepts at once
	Least       int64     // bytes of memory that the smallest model takes
	Address     Address   // that it listens on
	Models      Folder    // where downloads go
	Choices     Folder    // where kernels that were chosen are kept
	Built       time.Time // when the program was, at the latest; zero: not known
}

// checks look at one property each. One that returns no words has nothing to say.
var checks = []func(*Machine, Setting) Finding{
	(*Machine).instructions, (*Machine).cores, (*Machine).quota, (*Machine).room, (*Machine).swap, (*Machine).pages,
	(*Machine).nodes, (*Machine).frequency, (*Machine).boost, (*Machine).descriptors, (*Machine).webAssembly, (*Machine).clock,
	func(_ *Machine, s Setting) Finding { return s.Address.finding() }, models, choices,
}

// Check returns the findings of all checks.
func (m *Machine) Check(s Setting) (list []Finding) {
	for _, check := range checks {
		if f := check(m, s); f.Says != "" {
			if f.Level == "" {
				f.Level = Good
			}
			list = append(list, f)
		}
	}
	return list
}

func (m *Machine) instructions(Setting) Finding {
	f := Finding{What: "instructions", Says: m.ISA}
	if len(m.Features) > 0 {
		f.Says += " (" + strings.Join(m.Features, " ") + ")"
	}
	if m.NoTiles != "" {
		f.Says += "; " + m.NoTiles
	}
	switch {
	case m.ISA != m.Best:
		f.Level, f.Do, f.Run = Slow, "this processor has "+m.Best+", which LUTRA_KERNEL forbids", "unset LUTRA_KERNEL"
	case m.ISA == "generic" && m.Arch == "amd64":
		f.Level, f.Do = Slow, "portable kernels are ten times slower: give a virtual machine the host's processor (QEMU: -cpu host), or take one with AVX2"
	}
	return f
}

func (m *Machine) cores(Setting) Finding {
	f := Finding{What: "cores", Says: fmt.Sprintf("%d threads compute, of %d logical processors", m.Threads, m.Logical)}
	if m.Affinity > 0 && m.Affinity < m.Logical {
		f.Says += fmt.Sprintf("; this process may run on %d of them (taskset, cpuset)", m.Affinity)
	}
	return f
}

func (m *Machine) quota(Setting) Finding {
	if m.Quota == 0 {
		return Finding{}
	}
	f := Finding{What: "CPU quota", Says: fmt.Sprintf("%.4g processors of the control group", m.Quota)}
	if whole := math.Floor(m.Quota); whole < m.Quota {
		f.Level = Slow
		f.Do = "threads wait for each other, so part of a processor is of no use: make the quota a whole number"
		f.Run = fmt.Sprintf("docker update --cpus %d CONTAINER", int(whole)+1)
	}
	return f
}

func (m *Machine) room(s Setting) Finding {
	f := Finding{What: "memory", Says: fmt.Sprintf("%s free of %s", output.Bytes(m.Free), output.Bytes(m.Memory))}
	if m.Limit > 0 {
		f.Says += ", the limit of the control group"
	}
	if m.Free < s.Least {
		f.Level, f.Do = Stops, fmt.Sprintf("the smallest model takes %s: end other programs or raise the limit", output.Bytes(s.Least))
	}
	return f
}

func (m *Machine) swap(Setting) Finding {
	if m.Swap == 0 {
		return Finding{}
	}
	f := Finding{What: "swap", Says: fmt.Sprintf("%s used of %s", output.Bytes(m.SwapUsed), output.Bytes(m.Swap))}
	if m.SwapUsed > m.Memory/10 {
		f.Level, f.Do, f.Run = Slow, "a model that is swapped out answers at the speed of the disk", "sudo sysctl vm.swappiness=1"
	}
	return f
}

func (m *Machine) pages(Setting) Finding {
	if m.HugePages == "" {
		return Finding{}
	}
	f := Finding{What: "huge pages", Says: m.HugePages}
	if m.HugePages == "never" {
		f.Level, f.Do = Slow, "weights on small pages are read more slowly"
		f.Run = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
	}
	return f
}

func (m *Machine) webAssembly(Setting) Finding {
	if !m.Interprets {
		return Finding{}
	}
	return Finding{What: "code in answers", Level: Slow, Says: sandbox.Interpreted,
		Do: "where tests of answers (verify.tests) are wanted, let the server make code: MemoryDenyWriteExecute=no in its unit of systemd"}
}

func (m *Machine) nodes(Setting) Finding {
	if m.Nodes < 2 {
		return Finding{}
	}
	return Finding{What: "memory nodes", Says: fmt.Sprintf("%d; models are spread over those that threads run on", m.Nodes)}
}

func (m *Machine) frequency(Setting) Finding {
	if m.Governor == "" {
		return Finding{}
	}
	f := Finding{What: "governor", Says: m.Governor}
	if m.Driver != "" {
		f.Says += " (" + m.Driver + ")"
	}
	// Drivers that choose frequencies themselves do so under powersave too.
	itself := m.Driver == "intel_pstate" || m.Driver == "amd-pstate-epp"
	if m.Governor == "conservative" || m.Governor == "ondemand" || m.Governor == "powersave" && !itself {
		f.Level, f.Do, f.Run = Slow, "cores are slow to speed up", "sudo cpupower frequency-set -g performance"
	}
	return f
}

func (m *Machine) boost(Setting) Finding {
	if m.Turbo == "" {
		return Finding{}
	}
	f := Finding{What: "turbo", Says: m.Turbo}
	if m.Turbo == "off" {
		f.Level, f.Do, f.Run = Slow, "cores stay below their highest frequency", "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
		if m.Driver == "intel_pstate" {
			f.Run = "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
		}
	}
	return f
}

// spareFiles is the most files that a server opens besides connections.
const spareFiles = 64

func (m *Machine) descriptors(s Setting) Finding {
	if m.Files == 0 {
		return Finding{}
	}
	f := Finding{What: "open files", Says: "no limit"}
	if m.Files < math.MaxInt64 {
		f.Says = fmt.Sprintf("%d at most", m.Files)
	}
	want := uint64(s.Connections + spareFiles) //nolint:gosec // not negative
	switch {
	case m.Files < spareFiles:
		f.Level, f.Do, f.Run = Stops, "a server needs some for itself", fmt.Sprintf("ulimit -n %d", want)
	case m.Files < want:
		f.Level, f.Run = Slow, fmt.Sprintf("ulimit -n %d", want)
		f.Do = fmt.Sprintf("server.max_connections is %d, and each takes a file", s.Connections)
	}
	return f
}

func (m *Machine) clock(s Setting) Finding {
	f := Finding{What: "clock", Says: m.Clock.UTC().Format("2006-01-02 15:04 MST")}
	if m.Clock.Add(24 * time.Hour).Before(s.Built) {
		f.Level, f.Do, f.Run = Slow, "it is before this program was built, and downloads by HTTPS fail", "sudo timedatectl set-ntp true"
	}
	return f
}

func models(_ *Machine, s Setting) Finding {
	f := s.Models.finding("models")
	if f.Level == Slow {
		f.Do, f.Run = "downloads fail; name a folder that can be written", "export HF_HOME=/path/to/folder"
	}
	return f
}

func choices(_ *Machine, s Setting) Finding {
	f := s.Choices.finding("kept kernels")
	if f.Level == Slow {
		f.Do, f.Run = "each start measures kernels anew; name a folder that can be written", "export XDG_CACHE_HOME=/path/to/folder"
	}
	return f
}
