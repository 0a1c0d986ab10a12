//go:build purego || !(amd64 || arm64)

package pool

// pause passes about n times 10 ns, with dependent additions and nothing else.
func pause(n int) {
	for range 10 * n {
		spin()
	}
}

//go:noinline
func spin() {}
