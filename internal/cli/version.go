package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/choice"
)

// release is the version of a binary that is given to others. It is set by
//
//	go build -ldflags "-X github.com/lutra-lm/lutra/internal/cli.release=v1.2.0"
var release string

// built is the commit of such a binary and its time, which Go does not note in every checkout;
// set as release is.
var built string

// Version returns one word: a release, a module's version or a revision.
func Version() string {
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
	kernels := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long: `Shows the version, and how it was built: the commit and its time, the Go, and its settings.
With --kernels also which kernels this machine's products go to where there are several, and why: they are
measured once for a build and a processor, and kept in a file. lutra-lab bench kernels measures
them again.`,
		Example: `  lutra version
  lutra version --kernels`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine(cmd.Root().Name()), howBuilt(debug.ReadBuildInfo()))
			if kernels && err == nil {
				bench.PrintChoices(cmd.OutOrStdout())
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&kernels, "kernels", false, "show the kernels chosen too, and why")
	return cmd
}

// keepChoices has what is chosen by measuring kept in the user's folder for caches, for this
// very program on this processor.
func keepChoices() {
	dir, err := os.UserCacheDir()
	if err != nil {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	info, err := os.Stat(program)
	if err != nil {
		return
	}
	choice.KeepIn(filepath.Join(dir, "lutra", "kernels"), fmt.Sprintf("%s %d %d", Version(), info.Size(), info.ModTime().UnixNano()))
}

// howBuilt says in lines what a program was built from and with. The settings are those that
// Go keeps in it, without what it says of the commit.
func howBuilt(info *debug.BuildInfo, known bool) string {
	if !known {
		return ""
	}
	var commit, date string
	changed, settings := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.time":
			date = " of " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed since"
		case s.Value != "" && !strings.HasPrefix(s.Key, "vcs"):
			settings += " " + s.Key + "=" + s.Value
		}
	}
	lines := ""
	if commit != "" {
		lines = fmt.Sprintf("commit    %s%s%s\n", commit, date, changed)
	} else if built != "" {
		lines = fmt.Sprintf("commit    %s\n", built)
	}
	return lines + fmt.Sprintf("go        %s\nsettings %s\n", info.GoVersion, settings)
}

// versionLine returns what --version of a program prints, and its command version first.
func versionLine(program string) string {
	_, long := describeBuild(debug.ReadBuildInfo())
	return program + " " + strings.TrimSpace(long) + "\n"
}
