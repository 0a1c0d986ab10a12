// Package cgroup reads which part of a Linux machine a process may use: the limits of its
// control group and of those above it, of version 1 and 2. Other systems have none.
//
//	/proc/self/cgroup ─▶ the process's group in each hierarchy ─▶ /sys/fs/cgroup/...
//
// What is not there, or makes no sense, binds nothing.
package cgroup

import (
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CPUs returns the processors' time that the process in root, a root file system, may use, as in
// 2.5; 0: there is no limit.
func CPUs(root fs.FS) (cpus float64) {
	least := func(quota, period string) {
		q, errQ := strconv.ParseInt(quota, 10, 64)
		p, errP := strconv.ParseInt(period, 10, 64)
		if n := float64(q) / float64(p); errQ == nil && errP == nil && q > 0 && p > 0 && (cpus == 0 || n < cpus) {
			cpus = n
		}
	}
	for dir := range groups(root, "") {
		quota, period, _ := strings.Cut(line(root, dir+"/cpu.max"), " ")
		least(quota, period)
	}
	for dir := range groups(root, "cpu") {
		least(line(root, dir+"/cpu.cfs_quota_us"), line(root, dir+"/cpu.cfs_period_us"))
	}
	return cpus
}

// Memory returns the lowest memory limit of the process, in bytes, and how much of it the group uses
// and would not give back. It reads root, and ok is false without a limit.
func Memory(root fs.FS) (limit, used int64, ok bool) {
	least := func(dir, most, current string) {
		n, err := strconv.ParseInt(line(root, dir+most), 10, 64)
		if err != nil || n < 0 || n >= unlimited || ok && n >= limit {
			return
		}
		limit, ok = n, true
		used, _ = strconv.ParseInt(line(root, dir+current), 10, 64) // 0 where it is not told
		used = max(used-reclaimable(root, dir), 0)
	}
	for dir := range groups(root, "") {
		least(dir, "/memory.max", "/memory.current")
	}
	for dir := range groups(root, "memory") {
		least(dir, "/memory.limit_in_bytes", "/memory.usage_in_bytes")
	}
	return limit, used, ok
}

// reclaimable returns the bytes of files in a group's memory that nobody has read lately, such as a
// model's file after loading. The system takes them back when memory is needed.
func reclaimable(root fs.FS, dir string) (bytes int64) {
	for l := range strings.Lines(read(root, dir+"/memory.stat")) {
		key, n, _ := strings.Cut(strings.TrimSpace(l), " ")
		if key == "inactive_file" || key == "total_inactive_file" { // with the groups below, in version 1
			if v, err := strconv.ParseInt(n, 10, 64); err == nil {
				bytes = max(bytes, v)
			}
		}
	}
	return bytes
}

// unlimited is at most what version 1 says where there is no limit: the most whole pages.
const unlimited = 1 << 62

// mostGroups bounds the hierarchies, and the groups of one.
const mostGroups = 64

// groups yields the folders of the process's groups in one hierarchy, from its own up to the root's.
// The hierarchy belongs to a controller of version 1, or with an empty name to version 2. A container
// sees its own group as the root.
func groups(root fs.FS, controller string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, l := range strings.Split(read(root, "proc/self/cgroup"), "\n") {
			parts := strings.SplitN(l, ":", 3) // number:controllers:path
			if len(parts) < 3 || i == mostGroups || !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			at := path.Join("sys/fs/cgroup", parts[1])
			if !exists(root, at) { // cpu,cpuacct is also mounted as cpu
				at = path.Join("sys/fs/cgroup", controller)
			}
			// Joined to the root first, no ".." leads out of it.
			for dir, n := path.Join("/", parts[2]), 0; n < mostGroups; dir, n = path.Dir(dir), n+1 {
				if !yield(path.Join(at, dir)) || dir == "/" {
					break
				}
			}
			return
		}
	}
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

func line(root fs.FS, name string) string {
	first, _, _ := strings.Cut(read(root, name), "\n")
	return strings.TrimSpace(first)
}

// read returns the beginning of a file; nothing where there is none.
func read(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return string(text)
}
