package cpu

import "golang.org/x/sys/cpu"

func hasFMA() bool { return cpu.X86.HasFMA }
