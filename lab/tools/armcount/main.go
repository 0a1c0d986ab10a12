// Command armcount counts multiply-adds a cycle of the arm64 kernels' inner loops, as
// llvm-mca expects them of several cores, and writes the tables that
// docs/data/arm64-*.csv hold. It builds tests of the kernels, disassembles them with llvm-objdump
// and gives llvm-mca one turn of an outer loop, the inner ones written out.
//
//	go run -C lab ./tools/armcount                                  # Lutra's kernels
//	go run -C lab ./tools/armcount -object x.o -symbol f -trips 8   # a loop of something else
//
// It does not see caches, predictors, and loads that wait for stores.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	object := flag.String("object", "", "an ELF `file` to count a loop of; none: Lutra's kernels")
	symbol := flag.String("symbol", "", "the routine of -object")
	trips := flag.String("trips", "", "turns of its inner loops, a number each, with commas")
	macs := flag.Int("macs", 0, "multiply-adds of a turn of the loop; 0: those of its SDOT, SMMLA or FMLA")
	loop := flag.Int("loop", 0, "which of its outermost loops, counted from 1; 0: the longest")
	only := flag.String("table", "", "the table of Lutra's kernels to print; none: all")
	suffix := flag.String("llvm", "", "what follows the names of LLVM's tools, as in -19")
	flag.Parse()
	t := tools(*suffix)
	if missing := t.missing(); missing != "" {
		fmt.Printf("armcount: skipped: there is no %s (apt-get install llvm-22, and -llvm=-22)\n", missing)
		return
	}
	var err error
	if *object == "" {
		err = countKernels(t, *only)
	} else {
		err = countOne(t, row{symbol: *symbol, trips: numbers(*trips), macs: *macs, loop: *loop}, *object)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "armcount:", err)
		os.Exit(1)
	}
}

func numbers(list string) (ns []int) {
	for s := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(s); err == nil {
			ns = append(ns, n)
		}
	}
	return ns
}

// countOne prints the row of a routine of any object.
func countOne(t tools, r row, object string) error {
	heading(cores)
	rates, err := t.rates(r, object, cores)
	if err != nil {
		return err
	}
	line("`"+r.symbol+"`", rates, nil)
	return nil
}

// countKernels prints the tables of Lutra's kernels, or only one, with their bounds.
func countKernels(t tools, only string) error {
	dir, err := os.MkdirTemp("", "armcount")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "test", "-C", "..", "-c", "-o", dir+"/", "./kernels", "./kernels/attention")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building for arm64: %w", err)
	}
	for _, table := range tables {
		if only != "" && only != table.title {
			continue
		}
		fmt.Printf("\n%s\n\n", table.title)
		heading(table.cores)
		for _, b := range table.bounds {
			peaks, err := t.peaks(b, table.cores)
			if err != nil {
				return err
			}
			line("*"+b.label+"*", peaks, nil)
			object := filepath.Join(dir, b.room()+".test")
			for _, r := range b.rows {
				rates, err := t.rates(r, object, table.cores)
				if err != nil {
					return err
				}
				line(r.label, rates, peaks)
			}
		}
	}
	return nil
}

func heading(cores []string) {
	fmt.Printf("| multiply-adds a cycle | %s |\n|%s\n", strings.Join(cores, " | "), strings.Repeat(" --- |", len(cores)+1))
}

// line prints rates, and in brackets their share of the bound.
func line(label string, rates, bound []float64) {
	fmt.Printf("| %s |", label)
	for i, r := range rates {
		if bound == nil {
			fmt.Printf(" %.1f |", r)
		} else {
			fmt.Printf(" %.1f (%.2f) |", r, r/bound[i])
		}
	}
	fmt.Println()
}
