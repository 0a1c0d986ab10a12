//go:build unix

package hub

import "syscall"

func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
