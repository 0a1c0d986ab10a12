package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestAnAnswerIsBoundedUnlessTheUserOrASearchSaysOtherwise(t *testing.T) {
	url, asked := scripted(t, `{"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}`)
	for _, c := range []struct {
		args []string
		want any
	}{
		{nil, 1024.0}, {[]string{"--max-tokens", "7"}, 7.0}, {[]string{"--max-tokens", "0"}, nil}, {[]string{"--scaling", "sc2;early_stop.consensus=0.9", "--max-tokens", "9"}, 9.0},
	} {
		_, err := lutra(t, append([]string{"ask", "--url", url, "hi"}, c.args...)...)
		if got := (*asked)["max_tokens"]; got != c.want || err != nil && !strings.Contains(err.Error(), "did not apply") {
			t.Errorf("%q: max_tokens is %v, want %v; %v", c.args, got, c.want, err)
		}
		if got := fmt.Sprint((*asked)["repetition_detection"]); got != "map[max_pattern_size:64 min_count:8 min_pattern_size:8]" {
			t.Errorf("%q: repetition_detection is %s", c.args, got)
		}
	}
	if _, err := lutra(t, "ask", "--url", url, "--scaling", "sc2", "hi"); (*asked)["max_tokens"] != nil {
		t.Errorf("candidates of a search have at most %v tokens, %v", (*asked)["max_tokens"], err)
	}
}

func TestAskAndChatEndAnswersThatRepeatThemselves(t *testing.T) {
	sweep.Full(t)
	schema := fileOf(t, `{"type":"array","items":{"const":1},"minItems":500}`)
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	for _, where := range [][]string{{"--model", "lutra-tiny-s"}, {"--url", s.base}} {
		for command, in := range map[string]string{"ask": "", "chat": "hi\n"} {
			var out, errOut bytes.Buffer
			args := append([]string{command, "--schema", schema, "--max-tokens", "0"}, where...)
			if command == "ask" {
				args = append(args, "hi")
			}
			cmd := Command(&out, &errOut)
			cmd.SetIn(strings.NewReader(in))
			cmd.SetArgs(args)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "1"); !strings.Contains(errOut.String(), "(ended: the answer repeated itself)\n") || n < 20 || n > 100 {
				t.Errorf("%s %q writes %s and says %s", command, where, &out, &errOut)
			}
		}
	}
}
