// Package choice chooses among methods of multiplying by the number of tokens, as an earlier run of
// the program or this one measured. All methods give the same bits.
//
//	grouped ─┐  Of: rules of a packing         KeepIn
//	ternary ─┴──────────▶ choice ◀───────────────────▶ a file of one program and processor
//
// Methods multiply a matrix that no cache holds, as a step finds the weights of a model, on one
// thread and by the time that it computes.
package choice

//go:generate go -C ../_gen run . -family evict -pkg choice -out ../choice/asm_evict_amd64.s -stubs ../choice/asm_evict_amd64.go

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Method multiplies in one way.
type Method struct {
	Name  string
	Least int // tokens with which it multiplies by itself: with fewer another one does
}

// Width gives one method to all numbers of tokens from From on, up to the next width.
type Width struct {
	From   int
	Tokens []int // are measured, in ascending order
}

// Question asks which methods are to multiply the matrices of a packing.
type Question struct {
	Name    string // of the packing, for the file of kept choices
	Methods []Method
	Usual   Rules // hold unless another method is measured to be faster
	Widths  []Width
	// Prepare makes a matrix of weights, and the function that multiplies it once on the pool of one thread.
	Prepare func(p *pool.Pool) (weights []byte, multiply func(method string, n int), err error)
}

// Choice is made once a process.
type Choice struct {
	once  sync.Once
	rules Rules
	why   string
}

// Forced reports whether LUTRA_KERNEL is set, so that nothing is measured.
func Forced() bool { return os.Getenv("LUTRA_KERNEL") != "" }

// Of answers the question, and says why so. Of a Choice it is always the same question.
func (c *Choice) Of(q Question) (_ Rules, why string) {
	if Forced() {
		return q.Usual, "the usual ones, for LUTRA_KERNEL is set"
	}
	c.once.Do(func() { c.rules, c.why = q.answer() })
	return c.rules, c.why
}

func (q *Question) answer() (_ Rules, why string) {
	if len(q.Methods) < 2 {
		return q.Usual, "nothing to choose"
	}
	if text, ok := recall(q.Name); ok {
		if rules, ok := q.parse(text); ok {
			return rules, "measured by an earlier run"
		}
	}
	timings, took := q.measure(mostTime)
	if timings == nil {
		return q.Usual, fmt.Sprintf("the usual ones, for measuring takes more than %v", mostTime)
	}
	rules := q.choose(timings)
	note(q.Name, rules.String())
	return rules, fmt.Sprintf("measured in %v", took.Round(100*time.Microsecond))
}

// mostTime bounds the measuring of a packing, of which a model has two or three. A machine that needs
// longer for a few rounds, such as an emulated one, keeps the usual methods.
const mostTime = 50 * time.Millisecond

// measure answers with timings; nil when there is no time for them.
func (q *Question) measure(limit time.Duration) (timings []timing, took time.Duration) {
	cpu.OnThread(func(clock func() time.Duration) {
		begin := clock()
		defer func() { took = clock() - begin }()
		p := pool.New(1)
		defer p.Close()
		weights, multiply, err := q.Prepare(p)
		if err != nil {
			return
		}
		timings = q.time(func(method string, n int) (time.Duration, bool) {
			Evict(weights)
			start := clock()
			multiply(method, n)
			end := clock()
			return end - start, end-begin <= limit
		})
	})
	return timings, took
}

// Describe lists what rules say, one text a rule.
func (r Rules) Describe() (list []string) {
	for _, rule := range r {
		tokens := "tokens"
		if rule.From == 1 {
			tokens = "token"
		}
		list = append(list, fmt.Sprintf("%s from %d %s", rule.Method, rule.From, tokens))
	}
	return list
}

// String gives the rules as the file of kept choices has them: "1:gfni;9:mad".
func (r Rules) String() string {
	var list []string
	for _, rule := range r {
		list = append(list, fmt.Sprintf("%d:%s", rule.From, rule.Method))
	}
	return strings.Join(list, ";")
}
