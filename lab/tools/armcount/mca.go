package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// tools are LLVM's, by what follows their names.
type tools string

func (t tools) missing() string {
	for _, name := range []string{"llvm-mca", "llvm-objdump"} {
		if _, err := exec.LookPath(name + string(t)); err != nil {
			return name + string(t)
		}
	}
	return ""
}

func (t tools) run(stdin string, name string, args ...string) (string, error) {
	cmd := exec.Command(name+string(t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %.500s", name, err, errs.String())
	}
	return string(out), nil
}

// extensions are what some of the cores lack and their tables leave out.
const extensions = "-mattr=+dotprod,+i8mm,+fullfp16,+fp16fml,+bf16"

// cycles returns those of a turn of block once it has run for a while.
func (t tools) cycles(core string, block []string) (float64, error) {
	const warm, all = 10, 40
	var took [2]float64
	for i, turns := range []int{warm, all} {
		out, err := t.run(strings.Join(block, "\n"), "llvm-mca", "-march=aarch64", "-mcpu="+core, extensions, "-iterations="+strconv.Itoa(turns))
		if err != nil {
			return 0, err
		}
		_, after, _ := strings.Cut(out, "Total Cycles:")
		text, _, _ := strings.Cut(after, "\n")
		if took[i], err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
			return 0, fmt.Errorf("llvm-mca says no cycles: %w", err)
		}
	}
	return (took[1] - took[0]) / (all - warm), nil
}

// rates returns the multiply-adds a cycle of a routine, with its share of what unfolds
// the weights.
func (t tools) rates(r row, object string, cores []string) ([]float64, error) {
	block, err := t.block(object, r.symbol, r.loop, r.trips)
	if err != nil {
		return nil, err
	}
	macs := r.macs
	if macs == 0 {
		macs = multiplyAdds(block)
	}
	rates, err := t.perCycle(block, macs, cores)
	if err != nil || r.unfold == "" {
		return rates, err
	}
	if block, err = t.block(object, r.unfold, 0, nil); err != nil {
		return nil, err
	}
	unfolding, err := t.perCycle(block, r.weights*r.tokens, cores)
	for i, u := range unfolding {
		rates[i] = 1 / (1/rates[i] + 1/u)
	}
	return rates, err
}

// block returns one turn of a routine's loop.
func (t tools) block(object, symbol string, loop int, trips []int) ([]string, error) {
	code, err := t.disassemble(object, symbol)
	if err != nil {
		return nil, err
	}
	block, err := turn(code, loop, trips)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", symbol, err)
	}
	return block, nil
}

// peaks returns what a bound allows.
func (t tools) peaks(b bound, cores []string) ([]float64, error) {
	block := b.block()
	return t.perCycle(block, multiplyAdds(block), cores)
}

func (t tools) perCycle(block []string, macs int, cores []string) ([]float64, error) {
	rates := make([]float64, len(cores))
	for i, core := range cores {
		n, err := t.cycles(core, block)
		if err != nil {
			return nil, err
		}
		rates[i] = float64(macs) / n
	}
	return rates, nil
}

// multiplyAdds counts those of a block: 16 of SDOT, 32 of SMMLA, or else those of FMLA.
func multiplyAdds(block []string) int {
	whole, floats := 0, 0
	for _, instruction := range block {
		name, operands, _ := strings.Cut(instruction, "\t")
		switch name {
		case "sdot", "udot", "usdot", "sudot":
			whole += 16
		case "smmla", "ummla", "usmmla":
			whole += 32
		case "fmla":
			if floats += 4; strings.Contains(operands, ".8h") {
				floats += 4
			}
		}
	}
	if whole > 0 {
		return whole
	}
	return floats
}
