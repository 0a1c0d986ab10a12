package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/doctor"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
)

// errStops ends doctor where a server could not serve; the report says why.
var errStops = errors.New("a server could not serve here: see what stops it")

func newDoctor() *cobra.Command {
	var asJSON, quick bool
	file := ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine is good for, and what to change",
		Long: `Shows what serving finds on this machine: instructions and kernels, cores and limits of the
container, memory, huge pages, frequencies, files and folders; what to change, with the command that
does; and what speed to expect of the catalogue's models (lutra list --catalogue). Memory and products are measured for about
a second, which other work on the machine disturbs; --quick leaves that and the speeds out.

The kernels that multiply a packing's weights fastest here, by how many tokens come at once, are chosen
by themselves: there is nothing to do about them.

It changes nothing. The status is 1 if something would stop a server with this configuration. Some
checks need Linux and are skipped elsewhere.`,
		Example: `  lutra doctor
  lutra doctor --quick --json`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Environ(), cmd.Flags())
			if err != nil {
				return err
			}
			r, err := examine(&cfg, quick)
			if err != nil {
				return err
			}
			if asJSON {
				err = output.JSON(cmd.OutOrStdout(), r)
			} else {
				err = r.Print(cmd.OutOrStdout())
			}
			if err == nil && r.Stops() {
				err = errStops
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&quick, "quick", false, "measure nothing")
	f.StringVar(&file, "config", "", "configuration `FILE` of the server")
	return cmd
}

// leastMemory is the memory that serving the smallest embedded model takes.
const leastMemory = 64 << 20

// examine makes the report for a server of cfg.
func examine(cfg *config.Config, quick bool) (*doctor.Report, error) {
	s := doctor.Setting{Connections: cfg.Server.MaxConnections, Least: leastMemory, Built: buildTime()}
	if h, err := (&getter{}).open(); err != nil {
		s.Models = doctor.Folder{Err: err}
	} else {
		s.Models = doctor.LookAt(h.Cache())
	}
	if dir, err := os.UserCacheDir(); err != nil {
		s.Choices = doctor.Folder{Err: err}
	} else {
		s.Choices = doctor.LookAt(filepath.Join(dir, "lutra"))
	}
	s.Address = doctor.Try(cfg.Server.Addr, func() bool {
		url, err := ownURL(cfg.Server)
		return err == nil && checkReady(ownClient(), url) == nil
	})
	return doctor.Examine(s, hub.Catalogue(), quick)
}

// buildTime is a time at which this program existed: its commit's; zero where that is not known.
func buildTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value)
			return t
		}
	}
	return time.Time{}
}
