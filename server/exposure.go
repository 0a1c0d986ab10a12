package server

import (
	"fmt"
	"os"
	"runtime"
)

// Warnings are what an operator should hear of at the start, a line each: who can reach
// the server, and who can read its keys.
func (o *Options) Warnings() (list []string) {
	if !listensLocally(o.Addr) {
		clear := o.TLSCert == ""
		switch {
		case !o.NeedsKey() && clear:
			list = append(list, fmt.Sprintf("whoever can reach %s may use this server without a key, and http sends all texts in clear: set server.api_keys_file and server.tls_cert, or listen on 127.0.0.1", o.Addr))
		case !o.NeedsKey():
			list = append(list, fmt.Sprintf("whoever can reach %s may use this server without a key: set server.api_keys_file, or listen on 127.0.0.1", o.Addr))
		case clear:
			list = append(list, fmt.Sprintf("http sends keys and texts in clear to whoever listens on the way to %s: set server.tls_cert and server.tls_key, or put a proxy with TLS before a server on 127.0.0.1", o.Addr))
		}
	}
	const others = 0o007
	if info, err := os.Stat(o.APIKeysFile); err == nil && info.Mode().Perm()&others != 0 && runtime.GOOS != "windows" { // which has no such bits
		list = append(list, fmt.Sprintf("every user of this machine can read the keys in %s: chmod o= would forbid it", o.APIKeysFile))
	}
	return list
}

// AnswersTo tells whether the server answers requests to a host of this name.
func (o *Options) AnswersTo(host string) bool {
	h := newHosts(o)
	return h.allow(host)
}
