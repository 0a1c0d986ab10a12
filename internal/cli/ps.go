package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/server/registry"
)

// servedModel is a server's model in `ps --json`.
type servedModel struct {
	Name    string     `json:"name"`
	Status  string     `json:"status"` // loaded, loading, unloaded or failed
	Bytes   int64      `json:"bytes,omitempty"`
	Running int        `json:"running"` // sequences, or requests with server.count_requests
	Waiting int        `json:"waiting"`
	Until   *time.Time `json:"until,omitempty"` // when it goes, unless somebody asks; none: it stays
}

// keptFrom is the shortest time that means for ever, for which Ollama's API has no word.
const keptFrom = 10 * 365 * 24 * time.Hour

func newPs() *cobra.Command {
	var s ServerFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List a running server's models, and what they do",
		Long: `Lists the models of a running server: which are in memory, how much they take, how many
sequences they compute and let wait, and when they go. The server is that of --url or
LUTRA_URL, else the one that lutra serve starts with this environment. lutra stop takes a model
out of memory, lutra logs shows what the server logs.`,
		Example: `  lutra ps
  lutra ps --url http://127.0.0.1:8080 --json`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.client(cmd.Flags())
			if err != nil {
				return err
			}
			list, err := s.served(cmd.Context(), client)
			if err != nil {
				return err
			}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"model", "status", "memory", "running", "waiting", "until"}}
			for _, m := range list {
				memory, until := "", ""
				if m.Bytes > 0 {
					memory, until = output.Bytes(m.Bytes), "stays"
				}
				if m.Until != nil {
					until = m.Until.Local().Format(time.TimeOnly)
				}
				rows = append(rows, []string{output.OneLine(m.Name), output.OneLine(m.Status), memory, fmt.Sprint(m.Running), fmt.Sprint(m.Waiting), until})
			}
			return output.Table(cmd.OutOrStdout(), rows)
		},
	}
	s.Register(cmd.Flags(), "ask the server", "")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// client asks the server that the flags name, or else this environment's configuration.
func (s *ServerFlags) client(f *pflag.FlagSet) (*apiclient.Client, error) {
	if s.URL == "" && os.Getenv(urlVariable) == "" {
		cfg, err := config.Load("", os.Environ(), nil)
		if err != nil {
			return nil, err
		}
		if s.URL, err = ownURL(cfg.Server); err != nil {
			return nil, err
		}
	}
	if err := s.Complete(f); err != nil {
		return nil, err
	}
	return apiclient.New(s.URL, s.Key)
}

// served asks a server for its models.
func (s *ServerFlags) served(ctx context.Context, c *apiclient.Client) ([]servedModel, error) {
	var cards struct{ Data []registry.Card }
	var loaded struct {
		Models []struct {
			Name      string
			Size      int64
			ExpiresAt time.Time `json:"expires_at"`
		}
	}
	for path, into := range map[string]any{"/v1/models": &cards, "/api/ps": &loaded} {
		text, err := c.Own(ctx, s.Key, path, nil)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("%s%s is none of a lutra server: %w", strings.TrimSuffix(c.Base, "/v1"), path, err)
		}
	}
	text, err := c.Own(ctx, s.Key, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	does, err := sequences(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s/metrics: %w", strings.TrimSuffix(c.Base, "/v1"), err)
	}
	list := []servedModel{}
	for _, card := range cards.Data {
		if card.Root != card.ID || strings.Contains(card.ID, "+") { // other names of a model
			continue
		}
		m := servedModel{Name: card.ID, Status: card.Status.Value, Running: does[card.ID].running, Waiting: does[card.ID].waiting}
		if card.Status.Failed {
			m.Status = "failed"
		}
		for _, l := range loaded.Models {
			if strings.TrimSuffix(l.Name, registry.Tag) == card.ID {
				if m.Bytes = l.Size; l.ExpiresAt.Before(time.Now().Add(keptFrom)) {
					m.Until = &l.ExpiresAt
				}
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// doing counts the sequences of a model.
type doing struct{ running, waiting int }

// sequences reads what models do from a server's metrics.
func sequences(metrics io.Reader) (map[string]doing, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, err
	}
	does := map[string]doing{}
	for name, add := range map[string]func(*doing, int){
		"lutra_num_requests_running": func(d *doing, n int) { d.running = n },
		"lutra_num_requests_waiting": func(d *doing, n int) { d.waiting = n },
	} {
		for _, m := range families[name].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "model_name" {
					d := does[label.GetValue()]
					if v := m.GetGauge().GetValue(); v > 0 { // and a number
						add(&d, int(min(v, 1<<30)))
					}
					does[label.GetValue()] = d
				}
			}
		}
	}
	return does, nil
}

func newStop() *cobra.Command {
	var s ServerFlags
	cmd := &cobra.Command{
		Use:   "stop NAME|all",
		Short: "Take a model out of a running server's memory",
		Long: `Has a running server take a model out of memory once the requests that it has have ended,
or with all every model that may go: the first of a server and pinned ones stay. A request that
names it later loads it again. The server is that of lutra ps. To stop the server itself, press
Ctrl-C or run systemctl stop lutra.`,
		Example: `  lutra stop all`,
		Args:    Arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := s.client(cmd.Flags())
			if err != nil {
				return err
			}
			unload := func(name string) error {
				_, err := client.Own(cmd.Context(), s.Key, "/models/unload", map[string]string{"model": name})
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s goes\n", output.OneLine(name))
				}
				return err
			}
			if args[0] != "all" {
				return unload(args[0])
			}
			list, err := s.served(cmd.Context(), client)
			if err != nil {
				return err
			}
			for _, m := range list {
				if m.Bytes == 0 { // it is not there, or part of another
					continue
				}
				err := unload(m.Name)
				if status, _ := apiclient.Status(err); status == http.StatusBadRequest { // pinned
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s stays\n", output.OneLine(m.Name))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	s.Register(cmd.Flags(), "ask the server", "")
	return cmd
}
