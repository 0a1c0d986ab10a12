package chat

import (
	"io"
	"strings"
	"testing"
)

func TestPastedLinesAndAltEnterBelongToOneQuestion(t *testing.T) {
	const more = anotherLine
	for in, want := range map[string]string{
		"hello\r":                              "hello\r",
		"one\x1b\rtwo\r":                       "one" + more + "two\r",
		"\x1b[A\x1b[D":                         "\x1b[A\x1b[D",
		"\x1b[200~a\nb\r\nc\x1b[201~\r":        "a" + more + "b" + more + "c\r",
		"\x1b[200~\tx\x03\x04\x1b[1m\x1b[201~": "    x[1m",
		"\x1b[200~\x1b\r\x1b[201~":             more,
		"é\x7f\x03":                            "é\x7f\x03",
	} {
		for size := 1; size <= len(in); size++ {
			if size < 3 && strings.Contains(in, "\x1b") {
				continue // terminals send a key at once
			}
			var k translation
			got := ""
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				for n < len(rest) && rest[n-1] == '\x1b' || n > 1 && n < len(rest) && rest[n-2] == '\x1b' && rest[n-1] == '[' {
					n++
				}
				got += string(k.next([]byte(rest[:n])))
				rest = rest[n:]
			}
			if got != want {
				t.Errorf("%q in pieces of %d is %q, want %q", in, size, got, want)
			}
		}
	}
}

func TestKeysAreReadWhileALineIsWanted(t *testing.T) {
	terminal, typed := io.Pipe()
	editor, to := io.Pipe()
	k := newKeys(terminal, to, io.Discard)
	buf := make([]byte, 16)
	for _, line := range []string{"one\r", "two\r"} {
		k.begin()
		if _, err := io.WriteString(typed, line); err != nil {
			t.Fatal(err)
		}
		if n, err := editor.Read(buf); err != nil || string(buf[:n]) != line {
			t.Errorf("%q, %v, want %q", buf[:n], err, line)
		}
		k.end()
	}
	k.begin()
	_ = typed.Close()
	if n, err := editor.Read(buf); err != nil || string(buf[:n]) != endOfInput {
		t.Errorf("at the end: %q, %v", buf[:n], err)
	}
	_ = editor.Close()
}
