// Command cores tells what a step would take on machines of many cores. It records the tasks
// of a step here: how many parts a pool of so many threads cuts each into, and the time of
// each on one thread. Then it simulates the pool of another machine, with the times that
// cache lines take between its cores and the rate of its memory. All its figures are
// modelled; those for as many threads as this machine has are beside what was measured.
//
//	go run -C lab ./tools/cores -model model.gguf -rows 1,16
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// protocols are those of the pool that were compared; the first is what it does.
var protocols = []struct {
	name string
	protocol
}{
	{"one counter", protocol{look: true}},
	{"changed unseen", protocol{}},
	{"groups of 16", protocol{look: true, group: 16}},
}

func main() {
	log.SetFlags(0)
	path := flag.String("model", "", "GGUF `file`")
	rowList := flag.String("rows", "1,16", "rows of the steps")
	context := flag.Int("context", 64, "tokens before them")
	reps := flag.Int("reps", 20, "steps that are measured")
	flag.Parse()
	threads := []int{1, 2, 6, 8, 16, 32, 64, 112}
	limits := bench.Measure(50 * time.Millisecond)
	here := &machine{name: "here", cores: cpu.Cores(), cluster: 8, near: 60 * ns, far: 60 * ns, memory: limits.ReadAll, core: limits.ReadOne, speed: []float64{1}}
	for text := range strings.SplitSeq(*rowList, ",") {
		rows, err := strconv.Atoi(text)
		if err != nil || rows < 1 {
			log.Fatalf("-rows: %q is no number of rows", text)
		}
		rec, err := record(*path, rows, *context, threads, *reps)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("\n%d rows, %d tasks a step\n\n| machine | threads |", rows, len(rec.steps[1].tasks))
		for _, p := range protocols {
			fmt.Printf(" %s: ms | of the ideal |", p.name)
		}
		fmt.Printf("\n%s\n", strings.Repeat("|---", 2+2*len(protocols))+"|")
		for i := range machines {
			for _, n := range threads {
				if m := &machines[i]; 2 < n && n <= m.cores {
					rec.print(m, n)
				}
			}
		}
		for _, n := range slices.Sorted(maps.Keys(rec.measured)) {
			s := rec.steps[n]
			whole, _ := s.took(here, protocols[0].protocol, n)
			fmt.Printf("here, threads %d: measured %.2f ms, modelled %.2f ms\n", n, ms(rec.measured[n]), ms(whole))
		}
	}
}

func (rec *recording) print(m *machine, threads int) {
	s := rec.steps[threads]
	fmt.Printf("| %s | %d |", m.name, threads)
	for _, p := range protocols {
		whole, ideal := s.took(m, p.protocol, threads)
		fmt.Printf(" %.2f | %.2f |", ms(whole), float64(ideal)/float64(whole))
	}
	fmt.Println()
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
