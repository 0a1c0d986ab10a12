package offload

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// digestPattern matches the files that have the SHA-256 of a large file, so that the next start need not read it. Their
// names are hashes of what tells whether that file has changed.
var digestPattern = regexp.MustCompile(`^[0-9a-f]{32}\.sha256$`)

// hashPattern matches what such a file holds. A bit that is flipped in it costs what is kept of the model, no wrong answer.
var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// digest returns the hash of a file in this state: the one that another process has kept, or what find finds. An empty state
// is never kept.
func (f *Folder) digest(state string, find func() (string, error)) (string, error) {
	if state == "" {
		return find()
	}
	name := sha256.Sum256([]byte(state))
	path := filepath.Join(f.path, hex.EncodeToString(name[:16])+".sha256")
	if info, err := os.Lstat(path); regular(info, err) == nil && info.Size() == 2*sha256.Size {
		if text, err := os.ReadFile(path); err == nil && hashPattern.Match(text) {
			_ = os.Chtimes(path, time.Time{}, f.now()) // else it is found out again once it is too old
			return string(text), nil
		}
	}
	digest, err := find()
	if err != nil || !hashPattern.MatchString(digest) {
		return digest, err
	}
	if err := os.MkdirAll(f.path, 0o700); err == nil {
		_ = f.write(path, []byte(digest)) // else it is found out again
	}
	return digest, nil
}

// removeDigests removes the hashes that were not used since a time; the zero time: all.
func (f *Folder) removeDigests(since time.Time) {
	_ = each(f.path, mostModels, func(e fs.DirEntry) {
		if !digestPattern.MatchString(e.Name()) {
			return
		}
		if info, err := e.Info(); regular(info, err) == nil && (since.IsZero() || info.ModTime().Before(since)) {
			_ = os.Remove(filepath.Join(f.path, e.Name())) // another may have
		}
	})
}
