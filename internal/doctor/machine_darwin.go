package doctor

import "golang.org/x/sys/unix"

func processor() string {
	name, _ := unix.Sysctl("machdep.cpu.brand_string") // what is not known is left out
	return name
}

// affinity is not a property of processes there.
func affinity() int { return 0 }
