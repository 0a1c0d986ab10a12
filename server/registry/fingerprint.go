package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/lutra-lm/lutra/tts"
)

// build is what the program was built from.
var build = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := info.Main.Version + " " + info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			text += " " + s.Value
		}
	}
	return text
})

// Fingerprint names what answers to a seed depend on beside the request: the program,
// the kind of processor, and the model with its packing. Two files of one name and
// shape are not told apart.
func Fingerprint(m *tts.Model) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %+v", build(), runtime.GOARCH, m.Name, m.Config))
	return "fp_" + hex.EncodeToString(sum[:5])
}
