package answer

import (
	"strings"
	"testing"
)

// Answers as MATH states them, and as models write them.
var sameInMath = [][]string{
	// Fractions
	{`\frac{14}{3}`, `\frac{14}3`, `\dfrac{14}{3}`, `14/3`, `4\frac{2}{3}`, `\frac{28}{6}`, `x = \frac{14}{3}`, `$\frac{14}{3}$`, `4.\overline{6}`},
	{`\frac59`, `\frac 59`, `\frac{5}{9}`, `\tfrac{5}{9}`, `0.\overline{5}`, `.\overline{5}`},
	{`-\frac{1}{2}`, `\frac{-1}{2}`, `\frac{1}{-2}`, `-0.5`, `-\dfrac12`},
	{`\frac{x+1}{2}`, `\frac{x}{2}+\frac12`, `\frac12(x+1)`, `(x + 1)/2`, `0.5x + 0.5`},
	{`0.1\overline{6}`, `1/6`},
	// Roots
	{`\sqrt{2}`, `\sqrt2`, `\sqrt 2`, `\sqrt{2}.`, `√2`, `sqrt(2)`, `2/\sqrt{2}`, `2^{1/2}`, `\frac{\sqrt{8}}{2}`},
	{`3\sqrt{13}`, `3 \sqrt{13}`, `\sqrt{117}`, `3\cdot\sqrt{13}`, `\sqrt{13}\cdot 3`, `3*sqrt(13)`, `3√13`},
	{`\frac{\sqrt{3}}{3}`, `\frac{1}{\sqrt{3}}`, `\sqrt{\frac{1}{3}}`, `\frac13\sqrt3`},
	{`\frac{3 + \sqrt{5}}{2}`, `\frac{3}{2}+\frac{\sqrt{5}}{2}`, `\frac{\sqrt5+3}{2}`, `\frac{2}{3-\sqrt5}`},
	{`1+\sqrt{2}`, `\sqrt{2}+1`, `\frac{1}{\sqrt{2}-1}`},
	{`\sqrt[3]{4}`, `\sqrt[3]4`, `\sqrt[3]{ 4 }`},
	{`3`, `\sqrt[3]{27}`, `\sqrt{9}`, `9^{1/2}`, `3.0`, `\text{3}`},
	// Intervals and inequalities
	{`[-2,7]`, `[ -2, 7 ]`, `x \in [-2,7]`, `\left[-2, 7\right]`},
	{`(-\infty,-2]\cup[5,\infty)`, `\left(-\infty, -2\right] \cup \left[5, \infty\right)`, `x\in(-∞,-2]∪[5,∞)`, `[5,\infty) \cup (-\infty,-2]`},
	{`x \ge 5`, `x\geq 5`, `x ≥ 5`, `5 \le x`, `x \geqslant 5`},
	{`-1 < x \le 3`, `3\ge x>-1`},
	// Tuples, lists and sets
	{`\left( 3, \frac{\pi}{2} \right)`, `(3,\frac{\pi}{2})`, `(3, \pi/2)`, `(3,0.5\pi)`},
	{`(6,31,-1)`, `(6, 31, -1)`, `( 6, 31, -1 )`},
	{`1,-2`, `-2, 1`, `1, -2`, `x=1, x=-2`, `1\text{ and }-2`, `1 or -2`, `\{1,-2\}`, `\{-2, 1\}`, `$1$ and $-2$`},
	{`2 \pm \sqrt{3}`, `2+\sqrt3, 2-\sqrt3`, `2-\sqrt{3},2+\sqrt{3}`},
	{`(1,2),(3,4)`, `(3, 4), (1, 2)`, `(1,2) \text{ and } (3,4)`},
	// Units, money, degrees, percent
	{`42`, `42 \text{ cm}`, `42\text{ cm}^2`, `42 \mbox{ square units}`, `42^\circ`, `42^{\circ}`, `42\text{ inches}`, `\$42`, `42 dollars`, `42\,\mathrm{m}`, `42\text{ degrees}`},
	{`5\sqrt{2}`, `5\sqrt{2} \text{ cm}`, `\sqrt{50}\text{ units}`},
	{`32348`, `\$32,\!348`, `32{,}348`, `32,348.00`, `\$32,348`},
	{`10\%`, `10\% \text{ of it}`, `0.1`},
	// Complex numbers, polynomials, equations
	{`6 - 5i`, `6-5i`, `-5i+6`, `6 - 5 i`},
	{`\frac{1}{2}-\frac{i}{2}`, `\frac{1}{1+i}`, `\frac{1-i}{2}`},
	{`x^3+3x-6`, `x^{3} + 3x - 6`, `3x + x^3 - 6`},
	{`(x+2)(x-3)`, `x^2-x-6`, `(x-3)(x+2)`},
	{`2x^2(x+1)`, `2x^3+2x^2`},
	{`5x - 7y + 11z + 4 = 0`, `5x-7y+11z=-4`, `-10x+14y-22z-8=0`},
	{`y = 2x + 3`, `2x+3`, `f(x) = 3+2x`},
	{`\frac{1}{x+1}`, `(x+1)^{-1}`, `\frac{2}{2x+2}`, `1/(1+x)`},
	// Constants, functions, powers
	{`2\pi`, `2 \pi`, `2π`, `2pi`, `\pi\cdot2`, `\frac{4\pi}{2}`},
	{`\frac{9\pi}{4}\text{ square feet}`, `2.25\pi`},
	{`\sin 2x`, `\sin(2x)`, `\sin{2x}`},
	{`\log_2 3`, `\log_{2}3`, `\log_2(3)`},
	{`1024`, `2^{10}`, `2^{10}.`, `1{,}024`, `4^5`},
	{`\binom{5}{2}`, `10`},
	// Bases, matrices, words
	{`2516_8`, `2516_{8}`},
	{`\begin{pmatrix} -2 \\ 1 \end{pmatrix}`, `\begin{pmatrix}-2\\1\end{pmatrix}`, `\begin{bmatrix} -2 \\ 1.0 \end{bmatrix}`},
	{`\begin{pmatrix} 1/2 & 0 \\ 3 & -4 \end{pmatrix}`, `\begin{pmatrix}\frac{1}{2}&0\\3&-4\end{pmatrix}`},
	{`\text{Evelyn}`, `Evelyn`, `\textbf{Evelyn}`, ` evelyn.`},
	{`\text{June 20}`, `June 20`},
	{`\text{(C)}`, `(C)`, `C`, `\textbf{(C)}`, `c`},
	{`\text{even}`, `even`},
	{`a_1`, `a_{1}`},
}

func TestAnswersOfMathAreEqualHoweverTheyAreWritten(t *testing.T) {
	r := reader(t, "", "")
	for _, group := range sameInMath {
		for _, s := range group {
			if got, want := r.Key(s), r.Key(group[0]); got != want || got == "" {
				t.Errorf("Key(%q) = %q, want %q as for %q", s, got, want, group[0])
			}
		}
	}
}

func TestDifferentAnswersOfMathStayApart(t *testing.T) {
	r := reader(t, "", "")
	seen := map[string]string{}
	check := func(s string) {
		k := r.Key(s)
		if other, ok := seen[k]; ok {
			t.Errorf("Key(%q) = Key(%q) = %q", s, other, k)
		}
		seen[k] = s
	}
	for _, group := range sameInMath {
		check(group[0])
	}
	for _, s := range []string{`3\sqrt{2}`, `\sqrt[3]{5}`, `\sqrt[4]{4}`, `(-2,7)`, `(-2,7]`, `x > 5`, `x \le 5`, `(\frac{\pi}{2},3)`, `1,2`, `\{1\}`, `6+5i`, `x^3-3x-6`,
		`x^2+x-6`, `5x-7y+11z=4`, `\cos 2x`, `\sin x`, `\log_3 2`, `2516`, `2516_9`, `\begin{pmatrix} 1 \\ -2 \end{pmatrix}`, `\text{Velyne}`, `no`, `on`, `a_2`, `a`,
		`\text{odd}`, `\pi`, `2\pi+1`, `x+1`, `-\sqrt{2}`, `i`, `\infty`, `-\infty`, `\frac{1}{x-1}`, `\text{Paris, France}`, `100!`, `\text{June 21}`, `7 \text{ a.m.}`, `7 \text{ p.m.}`, `n \text{ even}`, `n \text{ odd}`, `xy`, `x^y`} {
		check(s)
	}
}

func TestHostileFormulasComeToAnEnd(t *testing.T) {
	r := reader(t, "", "")
	nested := strings.Repeat(`\sqrt{(x+`, 14) + "1" + strings.Repeat(`)^2}`, 14)
	for _, s := range []string{
		strings.Repeat("(", 190), strings.Repeat(`\frac`, 40), strings.Repeat("{", 150) + "1" + strings.Repeat("}", 49), strings.Repeat("-", 199) + "1",
		"9^{9^{9^{9}}}", "(a+b+c)^{16}(a+b+c)^{16}(a+b+c)^{16}", "2^{99999999999999}", "10^{1024}10^{1024}", strings.Repeat("(1+x)^{16}", 20), nested,
		`\frac{1}{0}`, `\frac{1}{x-x}`, `0^{-1}`, `\sqrt`, `\sqrt[`, `\frac{1}`, "_", "x_", "x_{", "^2", "2^", `\binom{9}{10}`, `\begin{pmatrix}\end{pmatrix}`, `\{\}`, "∪", ",,,",
		strings.Repeat("1,", 400), strings.Repeat(`\pm`, 100), "=", "<<", `\sqrt{` + strings.Repeat("9", 79) + "}", `\sqrt{999999937}`, `0.\overline{` + strings.Repeat("9", 20) + "}",
	} {
		if first := r.Key(s); first != r.Key(s) {
			t.Errorf("Key(%q) changes", s)
		}
	}
}
