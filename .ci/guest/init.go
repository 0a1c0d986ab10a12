// Command guest is process 1 of the emulated machine that .ci/bochs boots. It runs the commands that its initramfs names,
// reports their results on the serial console, and switches the machine off.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func main() {
	fmt.Printf("guest: exit %d\n", run())
	drain()
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// run executes the commands of /commands, which empty lines separate, and gives the
// first exit status that is not 0; 125 means that one could not be started.
func run() (status int) {
	for dir, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/tmp": "tmpfs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fail(err)
		}
		if err := syscall.Mount(kind, dir, kind, 0, ""); err != nil && err != syscall.EBUSY {
			return fail(fmt.Errorf("mount %s: %w", dir, err))
		}
	}
	text, err := os.ReadFile("/commands")
	if err != nil {
		return fail(err)
	}
	for command := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		if s := execute(strings.Split(command, "\n")); status == 0 {
			status = s
		}
	}
	return status
}

// execute runs a command, an argument a word; "NAME=value" words before the program
// set its environment.
func execute(words []string) int {
	cmd := exec.Cmd{Dir: "/", Env: []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/"}, Stdout: os.Stdout, Stderr: os.Stdout}
	for len(words) > 1 && !strings.HasPrefix(words[0], "/") {
		cmd.Env, words = append(cmd.Env, words[0]), words[1:]
	}
	cmd.Path, cmd.Args = words[0], words
	fmt.Println("guest:", cmd.Path)
	err := cmd.Run()
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
