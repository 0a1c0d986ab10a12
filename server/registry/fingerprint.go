package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/tts"
)

// Build describes the build of the program.
var Build = sync.OnceValue(func() (b receipt.Build) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
})

// Fingerprint names what answers to a seed depend on besides the request: the program,
// the family of kernels, the model's file, its packing and the format of keys and values. A model
// without a file goes by its name and shape.
func Fingerprint(m *tts.Model) (string, error) {
	what, err := m.Identity.Sketch()
	if err != nil {
		return "", err
	}
	if what == "" {
		what = fmt.Sprintf("%s %+v", m.Name, m.Config)
	}
	kv := ""
	if m.Engine != nil {
		kv = m.Engine.KVType().String()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %s %s %s %s %d", Build(), m.Identity.Kernels(), what, m.Identity.Packings(), kv, m.Config.Context))
	return "fp_" + hex.EncodeToString(sum[:5]), nil
}
