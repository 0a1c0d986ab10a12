package cli

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/server"
)

// newHealth makes the health check of containers, whose image has no shell and no curl.
func newHealth() *cobra.Command {
	var url, file string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Exit 0 when a server is ready",
		Long: `Asks the server that lutra serve starts with the same configuration: LUTRA_SERVER_ADDR
and LUTRA_SERVER_TLS_CERT, the file of --config, or --addr. One that listens on all
addresses is asked on this machine's own. A server that is still loading or
downloading its model is not ready.`,
		Example: `  lutra health
  lutra health --url http://127.0.0.1:8080`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := &http.Client{Timeout: healthTimeout}
			for _, name := range []string{"addr", "config"} {
				if url != "" && cmd.Flags().Changed(name) {
					return usage.Errorf("--url and --%s both say where the server is", name)
				}
			}
			if url == "" {
				cfg, err := config.Load(file, os.Environ(), cmd.Flags())
				if err != nil {
					return err
				}
				if url, err = ownURL(cfg.Server); err != nil {
					return err
				}
				client = ownClient()
			} else {
				var err error
				if url, err = apiclient.Address(url); err != nil {
					return usage.Errorf("--url: %w", err)
				}
			}
			if err := checkReady(client, url); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "server's base `URL` (default: as configured)")
	f.StringVar(&file, "config", "", "configuration `FILE` of the server")
	f.String("addr", server.DefaultOptions().Addr, "`HOST:PORT` that the server listens on")
	return cmd
}

const healthTimeout = 3 * time.Second

// ownClient asks a server of this machine, whose certificate is for another name. No secret is
// sent.
func ownClient() *http.Client {
	return &http.Client{Timeout: healthTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
}

// ownURL returns the address at which this machine reaches a server with opt.
func ownURL(opt server.Options) (string, error) {
	host, service, err := net.SplitHostPort(opt.Addr)
	if err != nil {
		return "", err
	}
	port, err := net.LookupPort("tcp", service)
	if err == nil && port == 0 {
		err = usage.Errorf("a server on %s has a port that only its log tells: name it with --url", opt.Addr)
	}
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(port))}
	if opt.TLSCert != "" {
		u.Scheme = "https"
	}
	return u.String(), nil
}

// checkReady says why the server at base is not ready.
func checkReady(client *http.Client, base string) error {
	resp, err := client.Get(base + "/readyz")
	if err != nil {
		return apiclient.Explain(base, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var answer struct{ Error struct{ Message string } }
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // without it, the status says enough
	if json.Unmarshal(text, &answer) == nil && answer.Error.Message != "" {
		return fmt.Errorf("%s/readyz: %s: %s", base, resp.Status, output.WithoutControls(answer.Error.Message))
	}
	return fmt.Errorf("%s/readyz: %s", base, resp.Status)
}
