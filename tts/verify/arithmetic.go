package verify

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/tts/answer"
)

// arithmetic computes the equations between numbers that an answer writes, as in 3*12=36. Its score is
// the share that hold.
type arithmetic struct{ values *answer.Reader }

func newArithmetic() (Check, error) {
	values, err := answer.Rule{}.Compile()
	return &arithmetic{values}, err
}

var (
	equation  = regexp.MustCompile(`[-+*/×÷·^().,\d \t$€£%=]*=[-+*/×÷·^().,\d \t$€£%=]*`)
	operation = regexp.MustCompile(`^[(\d.](?:.*[\d)%])?\s*[-+*/^]\s*[(\d.]`) // of numbers, both of which are there
	times     = regexp.MustCompile(`(\d)\s*[xX]\s*(\d)`)
	thousands = regexp.MustCompile(`(\d),(\d{3})\b`)
	plain     = strings.NewReplacer("×", "*", "·", "*", "÷", "/", `\times`, "*", `\cdot`, "*", `\div`, "/", "$", "", "€", "", "£", "", "−", "-", "**", "^")
)

// mostEquations bounds the computed equations, counting each of a chain.
const mostEquations = 256

// pauseAfterEquations is the number of equations that are computed between pauses.
const pauseAfterEquations = 16

// Check implements Check. An answer without equations is neither right nor wrong: 0.5.
func (a *arithmetic) Check(ctx context.Context, text string) (Verdict, error) {
	right, all, wrong, more := 0, 0, "", mostEquations
	text = times.ReplaceAllString(plain.Replace(text), "$1*$2")
	for _, found := range equation.FindAllString(text, mostEquations) {
		sides := strings.SplitN(found, "=", more+2) // of which the last is not looked at
		for i := range sides[1:] {
			if more--; more < 0 {
				break
			}
			if more%pauseAfterEquations == 0 {
				if err := cpulimit.Pause(ctx); err != nil {
					return Verdict{}, err
				}
			}
			left := a.side(sides[i])
			result := a.side(sides[i+1])
			if !operation.MatchString(left) {
				continue
			}
			l, ok := a.value(left)
			r, known := a.value(result)
			if !ok || !known {
				continue
			}
			if all++; equal(l, r, result) {
				right++
			} else if wrong == "" {
				wrong = fmt.Sprintf("; %s is not %s", left, result)
			}
		}
	}
	if all == 0 {
		return Verdict{0.5, "no equations"}, nil
	}
	return Verdict{float32(right) / float32(all), fmt.Sprintf("%d of %d equations hold", right, all) + wrong}, nil
}

// side returns one side of an equation, without what ends a sentence.
func (a *arithmetic) side(s string) string {
	s = strings.Trim(strings.TrimSpace(s), ",. ")
	for {
		next := thousands.ReplaceAllString(s, "$1$2")
		if next == s {
			return s
		}
		s = next
	}
}

// value returns the value of a side, if it is a number.
func (a *arithmetic) value(s string) (*big.Rat, bool) {
	number, ok := strings.CutPrefix(a.values.Key(s), "#")
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// equal tells whether two values are, up to the digits that the second is written with.
func equal(l, r *big.Rat, written string) bool {
	if l.Cmp(r) == 0 {
		return true
	}
	_, decimals, ok := strings.Cut(strings.TrimRight(written, "% "), ".")
	if !ok || strings.Trim(decimals, "0123456789") != "" || len(decimals) > 32 {
		return false
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(decimals))), nil))
	if strings.Contains(written, "%") {
		scale.Mul(scale, big.NewRat(100, 1))
	}
	difference := new(big.Rat).Sub(l, r)
	return difference.Abs(difference).Mul(difference, scale).Cmp(big.NewRat(1, 2)) <= 0
}
