package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

func newBenchKernels() *cobra.Command {
	o := bench.DefaultOptions()
	var shapes, packings, peerArgs []string
	var pattern string
	rounds := 5
	var asJSON, full bool
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Measure the matrix products beside this machine's own peak",
		Long: `Measures y[N][M] = x[N][K] · W[M][K] with every kernel this machine has, quantising
and arranging the activations included, beside the machine's own limits measured in
the same run: its int8 multiply rate, and for N = 1, whose weights come from memory,
its read rate. A ratio above 1 is a lookup kernel doing what the multipliers cannot.
Printed first are the kernels that products go to, by what was measured at the start
or by what LUTRA_KERNEL says.

It takes a minute or two; --full measures a second shape, more batch sizes and one
thread beside all. Ctrl-C ends it with the rows that there are.

--compare runs another program after each round of ours and prints the ratios of
neighbouring runs to the best of our kernels, for one packing and one number of
threads. --compare-pattern is a regular expression with groups (?P<m>), (?P<k>),
(?P<n>) and (?P<gflops>), or (?P<value>) for GMAC/s.`,
		Example: `  lutra bench kernels
  lutra bench kernels --packings I1,I2 --shapes 2048x8192 --tokens 1,32 --json
  lutra bench kernels --full`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if full {
				all := bench.FullOptions()
				o.Shapes = all.Shapes
				if !cmd.Flags().Changed("tokens") {
					o.Tokens = all.Tokens
				}
				if !cmd.Flags().Changed("threads") {
					o.Threads = all.Threads
				}
			}
			if len(shapes) > 0 {
				o.Shapes = nil
			}
			for _, s := range shapes {
				m, k, err := parseShape(s)
				if err != nil {
					return err
				}
				o.Shapes = append(o.Shapes, [2]int{m, k})
			}
			if len(packings) > 0 {
				o.Packings = nil
			}
			for _, name := range packings {
				p, err := matrix.Parse(name)
				if err != nil {
					return usage.Errorf("--packings: %q is none of %s", usage.Brief(name), packingList())
				}
				o.Packings = append(o.Packings, p)
			}
			for _, n := range o.Threads {
				if err := config.CheckThreads(n); err != nil {
					return usage.Errorf("--%w", err)
				}
			}
			for _, n := range append(o.Tokens, o.Threads...) {
				if n < 1 || n > 1<<12 {
					return usage.Errorf("%d is no number of tokens or threads", n)
				}
			}
			peers, err := parsePeers(peerArgs, pattern)
			if err != nil {
				return err
			}
			if len(peers) > 0 {
				return compareKernels(cmd, o, peers, rounds, asJSON)
			}
			return benchKernels(cmd, o, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&shapes, "shapes", nil, "matrices `MxK` (default 4096x4096)")
	f.StringSliceVar(&packings, "packings", nil, "run-time packings, such as I1,I2,Q4 (default all)")
	f.IntSliceVar(&o.Tokens, "tokens", o.Tokens, "batch sizes N")
	f.IntSliceVar(&o.Threads, "threads", o.Threads, "numbers of threads")
	f.DurationVar(&o.Budget, "budget", o.Budget, "time spent on one row")
	f.BoolVar(&full, "full", false, "more shapes, batch sizes and threads: some minutes")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&rounds, "rounds", rounds, "rounds of --compare")
	compareFlags(f, &peerArgs, &pattern)
	return cmd
}

// packingList names the packings that can be measured.
func packingList() string {
	var names []string
	for _, p := range matrix.Packings() {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

func parseShape(s string) (m, k int, err error) {
	a, b, _ := strings.Cut(s, "x")
	m, errM := strconv.Atoi(a)
	k, errK := strconv.Atoi(b)
	if errM != nil || errK != nil || m < 1 || k < 1 {
		return 0, 0, usage.Errorf("--shapes: %q is not of the form MxK", usage.Brief(s))
	}
	if m > 1<<30/k {
		return 0, 0, usage.Errorf("--shapes: %s has more than 2^30 weights", s)
	}
	return m, k, nil
}

func benchKernels(cmd *cobra.Command, o bench.Options, asJSON bool) error {
	machine := bench.Measure(min(time.Second/2, 5*o.Budget))
	printMachine(cmd.ErrOrStderr(), machine)
	printChoices(cmd.ErrOrStderr(), ternary.Choices())
	bar := output.Progress(cmd.ErrOrStderr(), o.Rows(), "products")
	rows := []bench.Row{}
	for row, err := range bench.Products(machine, o) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
		_ = bar.Add(1)
		if cmd.Context().Err() != nil {
			break
		}
	}
	_ = bar.Exit()
	// An interrupted benchmark says what it knows, and that it was interrupted.
	return errors.Join(printKernels(cmd.OutOrStdout(), rows, asJSON), cmd.Context().Err())
}

func printKernels(w io.Writer, rows []bench.Row, asJSON bool) error {
	if asJSON {
		return output.JSON(w, rows)
	}
	cells := [][]string{{"isa", "kernel", "packing", "M", "K", "N", "threads", "GMAC/s", "peak", "ratio"}}
	for _, r := range rows {
		cells = append(cells, []string{r.ISA, r.Kernel, r.Packing, fmt.Sprint(r.M), fmt.Sprint(r.K), fmt.Sprint(r.N), fmt.Sprint(r.Threads),
			fmt.Sprintf("%.1f", r.GMACs), fmt.Sprintf("%.1f", r.Peak), fmt.Sprintf("%.2f", r.Ratio)})
	}
	return output.Table(w, cells)
}

// printChoices says which kernels products go to, a line a packing.
func printChoices(w io.Writer, choices []ternary.Choice) {
	lines := map[matrix.Packing][]string{}
	for _, c := range choices {
		lines[c.Packing] = append(lines[c.Packing], fmt.Sprintf("%s from N=%d", c.Kernel, c.From))
	}
	for _, p := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(w, "%s: %s\n", p, strings.Join(lines[p], ", "))
	}
}

// compareKernels holds the best kernel of each product against the peers.
func compareKernels(cmd *cobra.Command, o bench.Options, peers []peer, rounds int, asJSON bool) error {
	if len(o.Packings) != 1 || len(o.Threads) != 1 || rounds < 1 {
		return usage.Errorf("--compare wants one of --packings, one of --threads and a positive number of --rounds")
	}
	var tests []string
	for _, s := range o.Shapes {
		for _, n := range o.Tokens {
			tests = append(tests, productName(fmt.Sprint(s[0]), fmt.Sprint(s[1]), fmt.Sprint(n)))
		}
	}
	ours := func() (speeds, error) {
		s := speeds{}
		for row, err := range bench.Products(bench.Machine{}, o) {
			if err = errors.Join(err, cmd.Context().Err()); err != nil {
				return nil, err
			}
			name := productName(fmt.Sprint(row.M), fmt.Sprint(row.K), fmt.Sprint(row.N))
			s[name] = max(s[name], row.GMACs)
		}
		return s, nil
	}
	bar := output.Progress(cmd.ErrOrStderr(), rounds*len(peers), "runs")
	r, err := compare(cmd.Context(), "GMAC/s", rounds, tests, ours, rivals(peers), func() { _ = bar.Add(1) })
	if err != nil {
		return err
	}
	return r.show(cmd.OutOrStdout(), asJSON)
}

func printMachine(w io.Writer, m bench.Machine) {
	fmt.Fprintf(w, "%s, %d threads: int8 peak %.1f GMAC/s a core (%s), memory read %.1f GB/s on one thread, %.1f on all\n",
		m.ISA, m.Threads, m.Peak, m.PeakOf, m.ReadOne, m.ReadAll)
}
