package config

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/tts/structure"
)

// Bytes returns the configured KV budget of one model, 0 for "auto".
func (c KV) Bytes() (int64, error) { return size(c.Memory) }

// Bytes returns the configured memory for the experts of a mixture, 0 for "auto".
func (c Experts) Bytes() (int64, error) { return size(c.Memory) }

// Options returns the bounds in bytes; what is empty is the default.
func (c Formats) Options() (structure.CacheOptions, error) {
	o := structure.DefaultCacheOptions()
	for _, key := range []struct {
		name, text string
		to         *int64
	}{{"memory", c.Memory, &o.Memory}, {"largest", c.Largest, &o.Largest}} {
		if key.text == "" {
			continue
		}
		n, err := size(key.text)
		if err == nil && n == 0 {
			err = fmt.Errorf("%q is not a size such as 64MiB", key.text)
		}
		if err != nil {
			return o, fmt.Errorf("%s: %w", key.name, err)
		}
		*key.to = n
	}
	if o.Largest > o.Memory/4*3 {
		return o, fmt.Errorf("largest: %s is more than three quarters of formats.memory, %s", output.Bytes(o.Largest), output.Bytes(o.Memory))
	}
	return o, nil
}

// size reads a size in bytes, 0 for "auto".
func size(text string) (int64, error) {
	if text == "auto" || text == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
	}
	if n < 1<<20 || n > 1<<50 {
		return 0, fmt.Errorf("%q is outside 1MiB..1PiB", text)
	}
	return int64(n), nil
}

// checkMemory checks that a machine with physical bytes of memory (0: unknown) can hold
// all caches.
func (c *Config) checkMemory(physical int64) error {
	each, err := c.KV.Bytes()
	if err != nil {
		return err
	}
	if n := int64(c.caches()); physical > 0 && each > physical/max(1, n) {
		return fmt.Errorf("%d caches of %s are more than this machine's memory of %s", n, output.Bytes(each), output.Bytes(physical))
	}
	return nil
}

// caches returns the number of KV caches of all models, verifiers and drafts.
func (c *Config) caches() int {
	n := len(c.Models)
	for _, v := range c.Verifiers {
		if !v.IsProbe() {
			n++
		}
	}
	for _, m := range c.Models {
		if _, ok := c.DraftOf(m); ok {
			n++
		}
	}
	return n
}
