package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/admission"
)

// checkInterval is the time between two looks at files that are read again when they change.
// Looking works on every file system, and where a mounted secret is a link to a folder that
// is exchanged.
const checkInterval = 5 * time.Second

// watched are files that are read together when one of them changes.
type watched struct {
	paths []string
	read  func() error
	last  []os.FileInfo // as they were when they were last read
}

// changed tells whether a file is another than at the last call. While one is missing, they
// are being exchanged.
func (w *watched) changed() bool {
	now := make([]os.FileInfo, len(w.paths))
	same := len(w.last) == len(now)
	for i, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		now[i] = info
		same = same && os.SameFile(info, w.last[i]) && info.ModTime().Equal(w.last[i].ModTime()) && info.Size() == w.last[i].Size()
	}
	w.last = now
	return !same
}

// Reloads tells whether there are files that Server.Reload reads.
func (o *Options) Reloads() bool { return o.APIKeysFile != "" || o.TLSCert != "" }

// reloader keeps keys and certificate as their files are.
type reloader struct {
	opt   *Options
	keys  *admission.Keys
	files []*watched
	// certificate is for new connections; nil without TLS.
	certificate atomic.Pointer[tls.Certificate]
}

// newReloader notes the files as they are now.
func newReloader(opt *Options, keys *admission.Keys) *reloader {
	r := &reloader{opt: opt, keys: keys}
	add := func(read func() error, paths ...string) {
		w := &watched{paths: paths, read: read}
		w.changed()
		r.files = append(r.files, w)
	}
	if r.opt.APIKeysFile != "" {
		add(r.readKeys, r.opt.APIKeysFile)
	}
	if r.opt.TLSCert != "" {
		add(r.readCertificate, r.opt.TLSCert, r.opt.TLSKey)
	}
	return r
}

// all reads all files again. What is wrong stays as it was.
func (r *reloader) all() error {
	var errs []error
	for _, w := range r.files {
		errs = append(errs, parallel.Try(w.read))
	}
	return errors.Join(errs...)
}

// run reads files again that have changed, until done closes.
func (r *reloader) run(done <-chan struct{}) {
	if len(r.files) == 0 {
		return
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.readChanged()
		case <-done:
			return
		}
	}
}

// readChanged reads files again that have changed.
func (r *reloader) readChanged() {
	for _, w := range r.files {
		if !w.changed() {
			continue
		}
		if err := parallel.Try(w.read); err != nil {
			r.opt.Log.Error().Err(err).Msg("the changed file was refused; the previous one stays in use")
		}
	}
}

// readKeys accepts the keys that are configured now.
func (r *reloader) readKeys() error {
	keys, err := r.opt.readKeys()
	if err != nil {
		return fmt.Errorf("server.api_keys_file: %w", err)
	}
	r.keys.Replace(keys)
	r.opt.Log.Info().Int("keys", len(keys)).Msg("the file of keys has been read")
	return nil
}

// readCertificate uses the certificate of the files for new connections.
func (r *reloader) readCertificate() error {
	pair, err := tls.LoadX509KeyPair(r.opt.TLSCert, r.opt.TLSKey)
	if err != nil {
		return fmt.Errorf("server.tls_cert: %w", err)
	}
	r.certificate.Store(&pair)
	r.opt.Log.Info().Time("expires", pair.Leaf.NotAfter).Msg("the certificate has been read")
	return nil
}
