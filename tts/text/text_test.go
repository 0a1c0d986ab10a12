package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// naive returns what text must agree with: decode everything, then cut at the stop
// that ends first, the longest of them.
func naive(b []byte, stops []string) (string, bool) {
	s := string([]rune(string(b)))
	for end := range len(s) + 1 {
		cut := -1
		for _, stop := range stops {
			if stop != "" && strings.HasSuffix(s[:end], stop) && (cut < 0 || end-len(stop) < cut) {
				cut = end - len(stop)
			}
		}
		if cut >= 0 {
			return s[:cut], true
		}
	}
	return s, false
}

// stream pushes b in pieces whose lengths cycle through sizes.
func stream(t *testing.T, b []byte, sizes []byte, stops []string) (string, bool) {
	t.Helper()
	d := New(stops, nil)
	var out strings.Builder
	for i := 0; len(b) > 0; i++ {
		n := 1
		if len(sizes) > 0 {
			n = min(int(sizes[i%len(sizes)]%7), len(b))
			if n == 0 && i%2 == 1 {
				n = 1
			}
		}
		s := d.Push(b[:n], true)
		if !utf8.ValidString(s) {
			t.Fatalf("push(%q) = %q, not valid UTF-8", b[:n], s)
		}
		out.WriteString(s)
		b = b[n:]
	}
	out.WriteString(d.Flush())
	if d.Delivered != out.Len() {
		t.Fatalf("delivered = %d, want %d", d.Delivered, out.Len())
	}
	return out.String(), d.Stopped
}

func TestTextAgreesWithTheNaiveReferenceForEverySplit(t *testing.T) {
	cases := []struct {
		in    string
		stops []string
	}{
		{"", nil},
		{"hello", nil},
		{"héllo wörld €uro 🙂 end", nil},
		{"a\xffb\xe2\x82", nil},
		{"\xf0\x9f\x99", nil},
		{"\xe2\x28\xa1", nil},
		{"one\n\ntwo", []string{"\n\n"}},
		{"one\ntwo", []string{"\n\n"}},
		{"xababac!", []string{"abac"}},
		{"aaaaab", []string{"aaab"}},
		{"abc", []string{"abc", "b"}},
		{"abc", []string{"bc", "abc"}},
		{"abcd", []string{"abcde", "zz"}},
		{"tail STO", []string{"STOP"}},
		{"STOP at once", []string{"STOP"}},
		{"x🙂y", []string{"🙂"}},
		{"x🙁y", []string{"🙂"}},
		{"bad\xff\xffgood", []string{"\ufffd\ufffd"}},
		{"ends in half a rune\xf0\x9f", []string{"\ufffd\ufffd"}},
		{"no match", []string{""}},
	}
	for _, c := range cases {
		want, stopped := naive([]byte(c.in), c.stops)
		for _, sizes := range [][]byte{nil, {1}, {2}, {3, 1}, {5}, {6, 0, 2}} {
			got, s := stream(t, []byte(c.in), sizes, c.stops)
			if got != want || s != stopped {
				t.Errorf("stream(%q, sizes %v, stops %q) = %q, %v, want %q, %v", c.in, sizes, c.stops, got, s, want, stopped)
			}
		}
	}
}

func TestTextDeliversAllThatCannotBelongToAStop(t *testing.T) {
	d := New([]string{"\nUser:"}, nil)
	for _, c := range []struct{ in, want string }{
		{"Hi", "Hi"}, {"\n", ""}, {"Us", ""}, {"e", ""}, {" it", "\nUse it"}, {"\n\n", "\n"}, {"User:", ""},
	} {
		if got := d.Push([]byte(c.in), true); got != c.want {
			t.Fatalf("push(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if !d.Stopped {
		t.Fatal("stopped = false after the stop string")
	}
	if got := d.Push([]byte("more"), true) + d.Flush(); got != "" {
		t.Fatalf("text after the stop = %q, want none", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("one\n\ntwo"), []byte{1, 3}, "\n\n", "wo")
	f.Add([]byte("\xf0\x9f\x99\x82\xff"), []byte{2}, "🙂", "\ufffd")
	f.Add([]byte("aabaabaaab"), []byte{4, 1}, "aabaaa", "aaab")
	f.Fuzz(func(t *testing.T, in, sizes []byte, a, b string) {
		stops := []string{strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")}
		want, stopped := naive(in, stops)
		got, s := stream(t, in, sizes, stops)
		if got != want || s != stopped {
			t.Errorf("stream(%q, %v, %q) = %q, %v, want %q, %v", in, sizes, stops, got, s, want, stopped)
		}
	})
}

func TestClonesShareTheTablesOfStopStrings(t *testing.T) {
	root := New([]string{strings.Repeat("ab", 500)}, nil)
	clone := root.Clone()
	if &clone.stops[0].shorter[0] != &root.stops[0].shorter[0] {
		t.Error("a clone has a table of its own: a hundred choices would have a hundred")
	}
	root.Push([]byte("ababab"), true)
	if clone.stops[0].state != 0 {
		t.Error("a clone shares its state, too")
	}
}
