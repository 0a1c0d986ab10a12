package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	kernelbench "github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/lab/bench/products"
)

// packingList returns the names of all packings, for errors.
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

// KernelOptions say which products to measure.
type KernelOptions struct {
	PeerOptions
	Shapes, Packings []string // as flags have them; empty: the usual ones
	Kernels          []string // empty: all
	Tokens, Threads  []int    // empty: the usual ones
	Budget           time.Duration
	Full             bool                                           // more usual ones
	Chosen           bool                                           // compare what is used with what could be forced
	Rounds           int                                            // with peers
	machine          func(budget time.Duration) kernelbench.Machine // Measure; tests of rows spare its seconds
}

// DefaultKernelOptions measure the usual products.
func DefaultKernelOptions() KernelOptions {
	usual := products.DefaultOptions()
	return KernelOptions{Tokens: usual.Tokens, Threads: usual.Threads, Budget: usual.Budget, Rounds: 5, machine: kernelbench.Measure}
}

// products returns the products to measure.
func (o *KernelOptions) products() (products.Options, error) {
	p := products.DefaultOptions()
	if o.Full {
		p = products.FullOptions()
	}
	p.Budget = o.Budget
	if len(o.Tokens) > 0 {
		p.Tokens = o.Tokens
	}
	if len(o.Threads) > 0 {
		p.Threads = o.Threads
	}
	if len(o.Shapes) > 0 {
		p.Shapes = nil
	}
	for _, s := range o.Shapes {
		m, k, err := parseShape(s)
		if err != nil {
			return p, err
		}
		p.Shapes = append(p.Shapes, [2]int{m, k})
	}
	if len(o.Packings) > 0 {
		p.Packings = nil
	}
	for _, name := range o.Packings {
		packing, err := matrix.Parse(name)
		if err != nil {
			return p, usage.Errorf("--packings: %q is none of %s", usage.Brief(name), packingList())
		}
		p.Packings = append(p.Packings, packing)
	}
	for _, name := range o.Kernels {
		if have := products.Kernels(); !slices.Contains(have, name) {
			return p, usage.Errorf("--kernels: %q is none of %s", usage.Brief(name), strings.Join(have, ", "))
		}
	}
	p.Kernels = o.Kernels
	for _, n := range p.Threads {
		if err := config.CheckThreads(n); err != nil {
			return p, usage.Errorf("--%w", err)
		}
	}
	for _, n := range append(p.Tokens, p.Threads...) {
		if n < 1 || n > 1<<12 {
			return p, usage.Errorf("%d is not a number of tokens or threads", n)
		}
	}
	return p, nil
}

// KernelReport is the report of `bench kernels`.
type KernelReport []products.Row

// Kernels measures products beside the machine's peak. What the machine
// can do and progress go to errOut. Interrupted, it returns both the rows that there
// are and an error.
func Kernels(ctx context.Context, opt KernelOptions, errOut io.Writer) (Report, error) {
	o, err := opt.products()
	if err != nil {
		return nil, err
	}
	peers, err := opt.peers()
	if err != nil {
		return nil, err
	}
	if opt.Chosen {
		return compareChosen(ctx, opt, o, errOut)
	}
	if len(peers) > 0 {
		return compareKernels(ctx, o, peers, opt.Rounds, errOut)
	}
	machine := opt.machine(min(time.Second/2, 5*o.Budget))
	printMachine(errOut, machine)
	choice.Forget()
	kernelbench.PrintChoices(errOut)
	meter := &output.Meter{W: errOut, What: "products"}
	defer meter.End()
	done := meter.Count(0, o.Rows())
	rows := KernelReport{}
	for row, err := range products.Products(machine, o) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		done()
		if ctx.Err() != nil {
			break
		}
	}
	return rows, ctx.Err()
}

// Print implements Report.
func (rows KernelReport) Print(w io.Writer) error {
	cells := [][]string{{"isa", "kernel", "packing", "M", "K", "N", "threads", "GMAC/s", "peak", "ratio"}}
	for _, r := range rows {
		cells = append(cells, []string{r.ISA, r.Kernel, r.Packing, fmt.Sprint(r.M), fmt.Sprint(r.K), fmt.Sprint(r.N), fmt.Sprint(r.Threads),
			fmt.Sprintf("%.1f", r.GMACs), fmt.Sprintf("%.1f", r.Peak), fmt.Sprintf("%.2f", r.Ratio)})
	}
	return output.Table(w, cells)
}

// compareKernels compares the best kernel of each product with the peers.
func compareKernels(ctx context.Context, o products.Options, peers []peer, rounds int, errOut io.Writer) (Report, error) {
	if len(o.Packings) != 1 || len(o.Threads) != 1 || rounds < 1 {
		return nil, usage.Errorf("--compare requires one of --packings, one of --threads and a positive number of --rounds")
	}
	var tests []string
	for _, s := range o.Shapes {
		for _, n := range o.Tokens {
			tests = append(tests, productName(fmt.Sprint(s[0]), fmt.Sprint(s[1]), fmt.Sprint(n)))
		}
	}
	ours := func() (speeds, error) {
		s := speeds{}
		for row, err := range products.Products(kernelbench.Machine{}, o) {
			if err = errors.Join(err, ctx.Err()); err != nil {
				return nil, err
			}
			name := productName(fmt.Sprint(row.M), fmt.Sprint(row.K), fmt.Sprint(row.N))
			s[name] = max(s[name], row.GMACs)
		}
		return s, nil
	}
	meter := &output.Meter{W: errOut, What: "runs"}
	defer meter.End()
	return compare(ctx, "GMAC/s", rounds, tests, ours, peers, meter.Count(0, rounds*len(peers)))
}

func printMachine(w io.Writer, m kernelbench.Machine) {
	fmt.Fprintf(w, "%s, %d threads: int8 peak %.1f GMAC/s a core (%s), memory read %.1f GB/s on one thread, %.1f on all\n",
		m.ISA, m.Threads, m.Peak, m.PeakOf, m.ReadOne, m.ReadAll)
}

// ChosenReport is the report of `bench kernels --chosen`.
type ChosenReport []products.ChosenRow

// compareChosen compares the kernels that are used with those that could be.
func compareChosen(ctx context.Context, opt KernelOptions, o products.Options, errOut io.Writer) (Report, error) {
	if len(opt.Tokens) == 0 {
		o.Tokens = products.ChosenTokens
	}
	choice.Forget()
	kernelbench.PrintChoices(errOut)
	meter := &output.Meter{W: errOut, What: "rows"}
	defer meter.End()
	done := meter.Count(0, o.ChosenRows())
	rows := ChosenReport{}
	for row, err := range products.Chosen(o) {
		if err != nil {
			return nil, err
		}
		done()
		if rows = append(rows, row); ctx.Err() != nil {
			break
		}
	}
	return rows, ctx.Err()
}

// Print implements Report.
func (rows ChosenReport) Print(w io.Writer) error {
	cells := [][]string{{"packing", "M", "K", "N", "threads", "chosen", "GMAC/s", "best", "GMAC/s", "ratio"}}
	for _, r := range rows {
		cells = append(cells, []string{r.Packing, fmt.Sprint(r.M), fmt.Sprint(r.K), fmt.Sprint(r.N), fmt.Sprint(r.Threads),
			r.Chosen, fmt.Sprintf("%.1f", r.GMACs), r.Best, fmt.Sprintf("%.1f", r.Forced), fmt.Sprintf("%.2f", r.Ratio)})
	}
	return output.Table(w, cells)
}
