//go:build unix

package chat

import (
	"os/exec"
	"syscall"
)

// endWithChildren has the end of a command's context end what it has started too, and keeps the
// terminal's Ctrl-C for the chat.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
