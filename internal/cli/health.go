package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/usage"
)

// newHealth is the health check of containers, whose image has no shell and no curl.
func newHealth() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "Exit 0 when a server is ready",
		Example: "  lutra health --url http://127.0.0.1:8080",
		Args:    arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := apiclient.Address(url)
			if err != nil {
				return usage.Errorf("--url: %w", err)
			}
			client := http.Client{Timeout: 3 * time.Second}
			resp, err := client.Get(url + "/readyz")
			if err != nil {
				return apiclient.Explain(url, err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s/readyz: %s", url, resp.Status)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://127.0.0.1:8080", "server's base `URL`")
	return cmd
}
