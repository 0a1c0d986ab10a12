//go:build !windows

package cli

import (
	"context"
	"io"
)

// underManager runs a command; on Windows, also under its service control manager.
func underManager(_ context.Context, errOut io.Writer, run func(errOut io.Writer) int) int {
	return run(errOut)
}
