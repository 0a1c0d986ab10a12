package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// release is the version of a binary that is given to others. It is set by
//
//	go build -ldflags "-X github.com/lutra-lm/lutra/internal/cli.release=v1.2.0"
var release string

// version returns one word: a release, a module's version or a revision.
func version() string {
	short, _ := describeBuild(debug.ReadBuildInfo())
	return short
}

// describeBuild says which build of the program this is, in a word and in a line.
func describeBuild(info *debug.BuildInfo, known bool) (short, long string) {
	const devel = "(devel)" // what Go calls a module that it builds in its own folder
	short = release
	revision, date, changed := "", "", ""
	if known {
		if v := info.Main.Version; v != devel {
			short = cmp.Or(short, v)
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value[:min(12, len(s.Value))]
			case "vcs.time":
				if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
					date = " of " + t.UTC().Format(time.DateOnly)
				}
			case "vcs.modified":
				if s.Value == "true" {
					changed = ", changed since"
				}
			}
		}
	}
	short = cmp.Or(short, revision, "unreleased")
	long = short
	if revision != "" {
		long += fmt.Sprintf(" (revision %s%s%s)", revision, date, changed)
	}
	return short, fmt.Sprintf("%s, %s %s/%s", long, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Long:    "Shows the version, the revision that it was built from, and what for.",
		Example: "  lutra version",
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine returns what lutra version and --version print.
func versionLine() string {
	_, long := describeBuild(debug.ReadBuildInfo())
	return "lutra " + strings.TrimSpace(long) + "\n"
}
