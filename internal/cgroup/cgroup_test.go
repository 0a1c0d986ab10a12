package cgroup

import (
	"testing"
	"testing/fstest"
)

// machine is a file system of one-line files.
func machine(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return m
}

func TestTheNarrowestGroupBinds(t *testing.T) {
	for _, c := range []struct {
		name        string
		files       map[string]string
		cpus        float64
		limit, used int64
	}{
		{"no groups", nil, 0, 0, 0},
		{"no limits", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"}, 0, 0, 0},
		{"a container", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "250000 100000",
			"sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "400", "sys/fs/cgroup/memory.stat": "anon 5\ninactive_file 150\nactive_file 7"}, 2.5, 1000, 250},
		{"a unit of systemd within a slice", map[string]string{"proc/self/cgroup": "0::/system.slice/lutra.service",
			"sys/fs/cgroup/system.slice/lutra.service/memory.max": "3000", "sys/fs/cgroup/system.slice/lutra.service/memory.current": "30",
			"sys/fs/cgroup/system.slice/memory.max": "2000", "sys/fs/cgroup/system.slice/memory.current": "1500",
			"sys/fs/cgroup/system.slice/cpu.max": "50000 100000"}, 0.5, 2000, 1500},
		{"version 1", map[string]string{"proc/self/cgroup": "4:memory:/a/b\n3:cpu,cpuacct:/a", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "150000",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5000",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "77", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 1.5, 5000, 77},
		{"version 1 without limits", map[string]string{"proc/self/cgroup": "4:memory:/\n3:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 0, 0, 0},
		{"a group outside of the container's view", map[string]string{"proc/self/cgroup": "0::/../..", "sys/fs/cgroup/memory.max": "10"}, 0, 10, 0},
		{"nonsense", map[string]string{"proc/self/cgroup": "0::", "sys/fs/cgroup/cpu.max": "-5 0", "sys/fs/cgroup/memory.max": "-1"}, 0, 0, 0},
		{"no period", map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "100000"}, 0, 0, 0},
	} {
		root := machine(c.files)
		limit, used, ok := Memory(root)
		if cpus := CPUs(root); cpus != c.cpus || limit != c.limit || used != c.used || ok != (c.limit > 0) {
			t.Errorf("%s: CPUs = %v, want %v; Memory = %d, %d, %v, want %d, %d", c.name, cpus, c.cpus, limit, used, ok, c.limit, c.used)
		}
	}
}

func FuzzNothingInAGroupsFilesPanics(f *testing.F) {
	f.Add("0::/a", "200000 100000", "1000")
	f.Add("4:cpu,memory:/a/../..", "-1", "9223372036854775807")
	f.Fuzz(func(t *testing.T, groups, quota, memory string) {
		root := machine(map[string]string{"proc/self/cgroup": groups, "sys/fs/cgroup/a/cpu.max": quota, "sys/fs/cgroup/a/memory.max": memory,
			"sys/fs/cgroup/cpu,memory/cpu.cfs_quota_us": quota, "sys/fs/cgroup/cpu,memory/cpu.cfs_period_us": quota, "sys/fs/cgroup/cpu,memory/memory.limit_in_bytes": memory})
		if limit, used, _ := Memory(root); CPUs(root) < 0 || limit < 0 || used < 0 {
			t.Errorf("CPUs = %v, Memory = %d, %d", CPUs(root), limit, used)
		}
	})
}
