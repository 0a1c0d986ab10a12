package markdown

import (
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// screen is a terminal as far as Stream needs one: what it shows, without styles.
type screen struct {
	columns, rows int
	lines         [][]rune
	row, column   int
}

func (t *screen) size() (int, int) { return t.columns, t.rows }

func (t *screen) Write(p []byte) (int, error) {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\x1b' && text[i+1] == '[':
			n := 0
			for i += 2; unicode.IsDigit(text[i]) || text[i] == ';'; i++ {
				n = 10*n + int(text[i]-'0')
			}
			switch text[i] {
			case 'A':
				t.row = max(t.row-n, len(t.lines)-t.rows, 0)
			case 'J':
				t.lines = t.lines[:min(len(t.lines), t.row+1)]
				if t.row < len(t.lines) {
					t.lines[t.row] = t.lines[t.row][:min(t.column, len(t.lines[t.row]))]
				}
			}
		case r == '\r':
			t.column = 0
		case r == '\n':
			t.row, t.column = t.row+1, 0
		default:
			w := runewidth.RuneWidth(r)
			if t.column+w > t.columns {
				t.row, t.column = t.row+1, 0
			}
			for len(t.lines) <= t.row {
				t.lines = append(t.lines, nil)
			}
			line := t.lines[t.row]
			for len(line) < t.column {
				line = append(line, ' ')
			}
			t.lines[t.row] = append(line[:t.column], r)
			t.column += w
		}
	}
	return len(p), nil
}

func (t *screen) String() string {
	var b strings.Builder
	for _, l := range t.lines {
		b.WriteString(strings.TrimRight(string(l), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// bare is text without styles.
func bare(text string) string {
	t := &screen{columns: 1 << 20, rows: 1 << 20}
	_, _ = t.Write([]byte(text))
	return t.String()
}

const sample = "# Sums\n\nTake **both** numbers, *then* `add`:\n\n1. first\n2. second, which is a long line that has to be wrapped\n   - inner\n\n   more\n3. third\n\n" +
	"```go\nfunc add(a, b int) int {\n\n\treturn a + b\n}\n```\nAfter it.\n\n| a | value |\n|---|------:|\n| x | 1 |\n| y | 2 |\n\n> said\n> twice\n\n---\n\nSo 2*3*4 = 24,\nand [a page](https://example.org)."

func TestMarkdownIsSetInLines(t *testing.T) {
	want := `Sums

Take both numbers, then add:

1. first

2. second, which is a long line
   that has to be wrapped

   • inner

   more

3. third

    func add(a, b int) int {

        return a + b
    }

After it.

a │ value
──┼──────
x │ 1
y │ 2

│ said
│ twice

────────────────────────────────

So 2*3*4 = 24,
and a page
(https://example.org).`
	got := Render(sample, 32)
	if bare(got) != want {
		t.Errorf("Render = %s\nwant %s", bare(got), want)
	}
	for _, styled := range []string{"\x1b[1;4mSums\x1b[0m", "\x1b[1mboth\x1b[0m", "\x1b[3mthen\x1b[0m", "\x1b[36madd\x1b[0m"} {
		if !strings.Contains(got, styled) {
			t.Errorf("%q is not in %q", styled, got)
		}
	}
}

func TestNoControlCharacterIsMadeOfMarkdown(t *testing.T) {
	for _, text := range []string{"&#27;[2Jx", "`a\x1b]0;x\x07`", "[x](http://a&#27;b)", "    \x1b[5m", "<b\x1b[1m>", "# \u009b2J"} {
		for _, r := range bare(strings.ReplaceAll(Render(text, 80), "\x1b[36m", "")) {
			if unicode.IsControl(r) {
				t.Errorf("%q shows %q", text, Render(text, 80))
			}
		}
		plain := strings.NewReplacer("\x1b[36m", "", "\x1b[2m", "", "\x1b[1;4m", "", "\x1b[0m", "").Replace(Render(text, 80))
		if strings.ContainsFunc(plain, unicode.IsControl) {
			t.Errorf("%q is %q", text, plain)
		}
	}
}

func TestDeepMarkdownHasABound(t *testing.T) {
	for _, text := range []string{strings.Repeat("> ", 4000) + "x", strings.Repeat("- ", 4000) + "x", strings.Repeat("*a ", 4000), strings.Repeat("|", 4000) + "\n" + strings.Repeat("|-", 4000)} {
		if n := len(Render(text, 20)); n > 1<<20 {
			t.Errorf("%.10q takes %d bytes", text, n)
		}
	}
}

func TestAStreamEndsAsTheWholeTextHoweverItIsCut(t *testing.T) {
	for _, columns := range []int{24, 80} {
		want := &screen{columns: columns, rows: 60}
		_, _ = want.Write([]byte(Render(sample, columns)))
		for size := 1; size < 40; size++ {
			s := &screen{columns: columns, rows: 60}
			stream := NewStream(s, s.size)
			for rest := []rune(sample); len(rest) > 0; {
				n := min(size, len(rest))
				if err := stream.Write(string(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := stream.Close(); err != nil {
				t.Fatal(err)
			}
			if got, want := s.String(), want.String(); got != want {
				t.Fatalf("%d columns in pieces of %d: %s\nwant %s", columns, size, got, want)
			}
		}
	}
}

func TestWhatIsFinishedIsShownAtOnce(t *testing.T) {
	s := &screen{columns: 40, rows: 24}
	stream := NewStream(s, s.size)
	for _, c := range []struct{ piece, want string }{
		{"one **tw", "one **tw"},
		{"o**\n", "one **two**"},
		{"\nthree **", "one two\n\nthree **"},
		{"four**\n\n- a\n\n- b", "one two\n\nthree four\n\n- a\n\n- b"},
		{"\n\nend", "one two\n\nthree four\n\n- a\n\n- b\n\nend"}, // it may become a word such as 1.
		{"s here", "one two\n\nthree four\n\n• a\n\n• b\n\nends here"},
		{"\n```\nx *", "one two\n\nthree four\n\n• a\n\n• b\n\nends here\n\n```\nx *"},
		{"\n```\n", "one two\n\nthree four\n\n• a\n\n• b\n\nends here\n\n    x *"},
	} {
		if err := stream.Write(c.piece); err != nil || s.String() != c.want {
			t.Fatalf("after %q: %s, %v\nwant %s", c.piece, s, err, c.want)
		}
	}
}

func TestABlockLongerThanTheScreenIsShownInParts(t *testing.T) {
	var long, want strings.Builder
	long.WriteString("```\n")
	for i := range 200 {
		line := strings.Repeat("x", i%7) + "*"
		long.WriteString(line + "\n")
		want.WriteString("    " + line + "\n")
	}
	long.WriteString("```\n\n**end** here.")
	want.WriteString("\nend here.")
	s := &screen{columns: 40, rows: 10}
	stream := NewStream(s, s.size)
	for _, r := range long.String() {
		if err := stream.Write(string(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Close(); err != nil || s.String() != want.String() {
		t.Errorf("%s, %v", s, err)
	}

	s = &screen{columns: 40, rows: 10}
	stream = NewStream(s, s.size)
	line := strings.Repeat("word ", 200)
	for i := 0; i < len(line); i += 10 {
		if err := stream.Write(line[i : i+10]); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Write("\n\nthe **next** one."); err != nil || stream.Close() != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(s.String(), "\n", ""); strings.Count(got, "word") != 200 || !strings.HasSuffix(got, "the next one.") {
		t.Errorf("a long line is %q", got)
	}
}

func FuzzRender(f *testing.F) {
	f.Add(sample)
	f.Add("| a |\n|--|\n| `b` |")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		text = string(clean(text))
		s := &screen{columns: 30, rows: 12}
		stream := NewStream(s, s.size)
		for rest := text; rest != ""; {
			n := min(7, len(rest))
			if err := stream.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
