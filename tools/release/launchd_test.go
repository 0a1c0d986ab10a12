package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"howett.net/plist"
)

// TestLaunchdsServiceIsSystemds holds the property list in macOS' archive to the settings of lutra.service
// that launchd has too.
func TestLaunchdsServiceIsSystemds(t *testing.T) {
	made, err := archive(sample(t, target{"darwin", "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Label                string
		Program              []string `plist:"ProgramArguments"`
		Run                  bool     `plist:"RunAtLoad"`
		KeepAlive            map[string]bool
		UserName             string
		WorkingDirectory     string
		EnvironmentVariables map[string]string
		Umask                int
		StandardErrorPath    string
		ExitTimeOut          int
		ProcessType          string
		Soft                 map[string]int `plist:"SoftResourceLimits"`
		Hard                 map[string]int `plist:"HardResourceLimits"`
	}
	var all map[string]any
	name := ""
	for _, f := range untar(t, made[0].data) {
		if path.Ext(f.path) != ".plist" {
			continue
		}
		name = strings.TrimSuffix(path.Base(f.path), ".plist")
		for _, into := range []any{&job, &all} {
			if err := plist.NewDecoder(bytes.NewReader(f.data)).Decode(into); err != nil {
				t.Fatal(err)
			}
		}
	}
	if name == "" || job.Label != name || len(all) != 13 { // launchctl finds the job by its label; each key is compared below
		t.Errorf("%q is labelled %q, with %d keys", name, job.Label, len(all))
	}
	unit := unitSettings(t)
	command := strings.Fields(unit["ExecStart"])
	command[0], command[3] = "/usr/local/bin/lutra", "/usr/local/etc/lutra/config.yaml"
	folder := job.WorkingDirectory
	for what, c := range map[string][2]any{
		"command":     {job.Program, command},
		"start":       {job.Run && len(job.UserName) > 1 && job.UserName[0] == '_', true},
		"restart":     {job.KeepAlive, map[string]bool{"SuccessfulExit": unit["Restart"] != "on-failure"}},
		"folder":      {folder, strings.ReplaceAll(unit["WorkingDirectory"], "%S", "/usr/local/var")},
		"environment": {job.EnvironmentVariables, map[string]string{"HF_HOME": folder, "HOME": folder}},
		"models":      {"HF_HOME=" + folder, strings.ReplaceAll(unit["Environment"], "%S", "/usr/local/var")},
		"umask":       {fmt.Sprintf("%04o", job.Umask), unit["UMask"]},
		"log":         {path.Dir(job.StandardErrorPath), folder},
		"stop":        {fmt.Sprint(job.ExitTimeOut), unit["TimeoutStopSec"]},
		"throttling":  {job.ProcessType, "Interactive"},
		"soft limits": {fmt.Sprint(job.Soft), fmt.Sprintf("map[Core:%s NumberOfFiles:%s]", unit["LimitCORE"], unit["LimitNOFILE"])},
		"hard limits": {job.Hard, job.Soft},
	} {
		if fmt.Sprint(c[0]) != fmt.Sprint(c[1]) {
			t.Errorf("%s: launchd has %v, systemd %v", what, c[0], c[1])
		}
	}
}

// unitSettings returns the settings of lutra.service, each with its last value.
func unitSettings(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/systemd/lutra.service")
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		settings[m[1]] = m[2]
	}
	return settings
}
