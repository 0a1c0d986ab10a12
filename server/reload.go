package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// checkInterval is how often files are looked at that are read again when they change.
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

// watchFiles notes the files as they are now.
func (s *Server) watchFiles() {
	add := func(read func() error, paths ...string) {
		w := &watched{paths: paths, read: read}
		w.changed()
		s.files = append(s.files, w)
	}
	if s.opt.APIKeysFile != "" {
		add(s.readKeys, s.opt.APIKeysFile)
	}
	if s.opt.TLSCert != "" {
		add(s.readCertificate, s.opt.TLSCert, s.opt.TLSKey)
	}
}

// Reload reads the file of keys and the certificate again. What is wrong stays as it was.
func (s *Server) Reload() error {
	var errs []error
	for _, w := range s.files {
		errs = append(errs, parallel.Try(w.read))
	}
	return errors.Join(errs...)
}

// reloadChanged reads files again that have changed, until done closes.
func (s *Server) reloadChanged(done <-chan struct{}) {
	if len(s.files) == 0 {
		return
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.readChanged()
		case <-done:
			return
		}
	}
}

// readChanged reads files again that have changed.
func (s *Server) readChanged() {
	for _, w := range s.files {
		if !w.changed() {
			continue
		}
		if err := parallel.Try(w.read); err != nil {
			s.log.Error().Err(err).Msg("the changed file was refused; the previous one stays in use")
		}
	}
}

// readKeys accepts the keys that are configured now.
func (s *Server) readKeys() error {
	keys, err := s.opt.readKeys()
	if err != nil {
		return fmt.Errorf("server.api_keys_file: %w", err)
	}
	s.keys.Replace(keys)
	s.log.Info().Int("keys", len(keys)).Msg("the file of keys has been read")
	return nil
}

// readCertificate uses the certificate of the files for new connections.
func (s *Server) readCertificate() error {
	pair, err := tls.LoadX509KeyPair(s.opt.TLSCert, s.opt.TLSKey)
	if err != nil {
		return fmt.Errorf("server.tls_cert: %w", err)
	}
	s.certificate.Store(&pair)
	s.log.Info().Time("expires", pair.Leaf.NotAfter).Msg("the certificate has been read")
	return nil
}
