package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/usage"
)

// transcript is a conversation in a file, with what it was held with.
type transcript struct {
	Model    string            `json:"model"`
	System   string            `json:"system,omitempty"`
	Scaling  string            `json:"test_time_scaling,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Messages []Message         `json:"messages"`
}

// maxTranscript bounds the bytes of a file, and maxTurns the messages.
const (
	maxTranscript = 16 << 20
	maxTurns      = 100_000
)

// chatName matches names of kept conversations, which are file names on every system.
var chatName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// stateFile returns a file of this program's in the system's folder for states.
func stateFile(name ...string) (path string, ok bool) {
	var dir string
	var err error
	switch {
	case filepath.IsAbs(os.Getenv("XDG_STATE_HOME")):
		dir = os.Getenv("XDG_STATE_HOME")
	case runtime.GOOS == "windows":
		dir, err = os.UserCacheDir() // %LocalAppData%
	case runtime.GOOS == "darwin":
		dir, err = os.UserConfigDir()
	default:
		dir, err = os.UserHomeDir()
		dir = filepath.Join(dir, ".local", "state")
	}
	return filepath.Join(append([]string{dir, "lutra"}, name...)...), err == nil && filepath.IsAbs(dir)
}

// transcriptFile returns the file of a kept conversation.
func transcriptFile(name string) (string, error) {
	if !chatName.MatchString(name) {
		return "", fmt.Errorf("%q is no name: want 1 to 64 letters, digits, dots, underscores and dashes", usage.Brief(name))
	}
	path, ok := stateFile("chats", name+".json")
	if !ok {
		return "", errors.New("there is no home folder to keep conversations in: set XDG_STATE_HOME")
	}
	return path, nil
}

// transcripts lists the names of kept conversations.
func transcripts() (names []string) {
	path, ok := stateFile("chats")
	if !ok {
		return nil
	}
	files, _ := os.ReadDir(path) // none were kept, or nobody may see them
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".json"); ok && chatName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// saveTranscript keeps the conversation under a name. A file of the name is replaced as a whole.
func saveTranscript(c *session, name string) (path string, err error) {
	if path, err = transcriptFile(name); err != nil {
		return "", err
	}
	model, _ := c.About()
	t := transcript{Model: model, System: c.options.System, Scaling: c.options.Scaling, Settings: map[string]string{}, Messages: c.turns}
	for _, s := range settings() {
		if now := s.now(c.options); now != "" && !ofPlan(s.name) {
			t.Settings[s.name] = now
		}
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return "", err
	}
	if len(data) > maxTranscript || len(t.Messages) > maxTurns {
		return "", fmt.Errorf("the conversation has %d messages in %d bytes; at most %d in %d are kept", len(t.Messages), len(data), maxTurns, maxTranscript)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // which only the user may read
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(f.Name(), path)
}

// ofPlan tells which settings are part of the search, which is kept as it is written.
func ofPlan(name string) bool { return name == "method" || name == "n" || name == "width" }

// loadTranscript reads a kept conversation; nothing changes if it cannot be used.
func loadTranscript(c *session, name string) (t transcript, err error) {
	path, err := transcriptFile(name)
	if err != nil {
		return t, err
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		hint := usage.DidYouMean(name, transcripts())
		if hint == "" {
			hint = "; /load lists them"
		}
		return t, fmt.Errorf("no conversation is kept as %q%s", name, hint)
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTranscript+1))
	if err != nil {
		return t, err
	}
	if len(data) > maxTranscript {
		return t, fmt.Errorf("%s has more than %d bytes", path, maxTranscript)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("%s is no conversation: %w", path, err)
	}
	if len(t.Messages) > maxTurns {
		return t, fmt.Errorf("%s has %d messages, more than %d", path, len(t.Messages), maxTurns)
	}
	for i, m := range t.Messages {
		if !slices.Contains([]string{RoleUser, RoleAssistant, RoleTool}, m.Role) {
			return t, fmt.Errorf("%s: message %d has the role %q", path, i+1, usage.Brief(m.Role))
		}
	}
	was := *c.options
	if err := adoptSettings(c, &t); err != nil {
		*c.options = was
		return t, fmt.Errorf("%s: %w", path, err)
	}
	c.turns, c.forgetful = t.Messages, false
	return t, nil
}

// adoptSettings takes the settings of a kept conversation.
func adoptSettings(c *session, t *transcript) error {
	for _, s := range settings() {
		value, ok := t.Settings[s.name]
		if !ok {
			value = byDefault
		}
		if ofPlan(s.name) {
			continue
		}
		if err := s.set(c, value); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		delete(t.Settings, s.name)
	}
	for name := range t.Settings {
		_, err := settingNamed(name)
		if err == nil {
			err = fmt.Errorf("the setting %s is part of the search", name)
		}
		return err
	}
	plan := t.Scaling
	if plan == "" {
		plan = NoScaling
	}
	c.options.System = t.System
	return c.search(plan)
}
