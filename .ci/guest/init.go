// Command guest is process 1 of the emulated machine that .ci/bochs boots:
// it runs the command its initramfs names, reports how it ended on the serial
// console, and switches the machine off.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	fmt.Printf("guest: exit %d\n", run())
	drain()
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// run executes /command, one argument a line ("NAME=value" lines before the
// program set its environment), and gives its exit status; 125 means that it
// could not be started.
func run() int {
	for dir, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/tmp": "tmpfs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fail(err)
		}
		if err := syscall.Mount(kind, dir, kind, 0, ""); err != nil && err != syscall.EBUSY {
			return fail(fmt.Errorf("mount %s: %w", dir, err))
		}
	}
	text, err := os.ReadFile("/command")
	if err != nil {
		return fail(err)
	}
	cmd := exec.Cmd{Dir: "/", Env: []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/"}, Stdout: os.Stdout, Stderr: os.Stdout}
	for line := range bytes.Lines(text) {
		word := string(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case cmd.Path != "":
			cmd.Args = append(cmd.Args, word)
		case word != "" && word[0] != '/':
			cmd.Env = append(cmd.Env, word)
		default:
			cmd.Path, cmd.Args = word, []string{word}
		}
	}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return fail(err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return fail(fmt.Errorf("%s: %v", cmd.Path, err)) // ended by a signal
}

// drain waits until the serial port has sent what was printed: switching the
// machine off would lose the end of it.
func drain() {
	const tcsbrk = 0x5409 // with an argument other than 0 it only waits
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, os.Stdout.Fd(), tcsbrk, 1)
}

func fail(err error) int {
	fmt.Println("guest:", err)
	return 125
}
