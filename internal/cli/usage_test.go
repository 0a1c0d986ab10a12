package cli

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// complain runs a command line as Main does and returns its exit status and what
// it wrote to standard error.
func complain(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	root := Command(io.Discard, &out)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(t.Context())
	if err == nil {
		return 0, out.String()
	}
	status := Report(&out, cmd.CommandPath(), err)
	return status, out.String()
}

func TestWrongUsageNamesTheCommandAndWhatWasProbablyMeant(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"serv", `lutra: unknown command "serv"; did you mean serve?`},
		{"sing", `lutra: unknown command "sing"`},
		{"help servee", `lutra help: unknown command "servee"; did you mean serve?`},
		{"serve --modle a", "lutra serve: unknown flag --modle; did you mean --model?"},
		{"serve -x", "lutra serve: unknown flag -x"},
		{"serve --threads", "lutra serve: --threads: has no value, want a whole number"},
		{"serve --threads 1.5", `lutra serve: --threads: found "1.5", want a whole number`},
		{"serve --strict=maybe", `lutra serve: --strict: found "maybe", want true or false`},
		{"serve --kv-type f17", `lutra serve: --kv-type: "f17" is none of f16, int8, int4, f16/int8, f16/int4, int8/f16, int8/int4, int4/f16, int4/int8; did you mean f16?`},
		{"serve --cache-type-k q5_1", `lutra serve: --cache-type-k: "q5_1" is none of f16, q4_0, q8_0`},
		{"serve --cache-type-v q4_0 --kv-type int8", "lutra serve: --kv-type has the formats of keys and values: leave out --cache-type-k and --cache-type-v"},
		{"serve extra", "lutra serve: --model: there is no file extra"},
		{"serve -np 4", "lutra serve: unknown flag -np; requests are computed side by side, up to engine.sequences"},
		{"serve --spec-type draft-mtp", "lutra serve: unknown flag --spec-type; --speculation auto guesses by lookup, by the model's MTP layer and by --draft-model"},
		{"serve --spec-draft-n-min 2", "lutra serve: unknown flag --spec-draft-n-min; --speculation auto guesses as many tokens as pay"},
		{"serve --speculative-config {}", "lutra serve: unknown flag --speculative-config; --speculation N or auto guesses"},
		{"serve --spec-draft-n-max 16", `lutra serve: --speculation: "16" is none of auto, off and the numbers to 15`},
		{"serve --parallel 4", "lutra serve: unknown flag --parallel; requests are computed side by side, up to engine.sequences"},
		{"serve -ngl 99", "lutra serve: unknown flag -ngl; the CPU computes all layers"},
		{"serve --host a --addr b:1", "lutra serve: --addr has the host and the port"},
		{"serve --port many", `lutra serve: --port: found "many", want a whole number`},
		{"serve --context -3", "lutra serve: --context: -3 is negative"},
		{"run --port 1 lutra-tiny-s hi", "lutra run: unknown flag --port; --addr HOST:PORT"},
		{"serve --model lutra-tiny-x", "lutra serve: --model: there is no file lutra-tiny-x; embedded models: lutra-tiny-l, lutra-tiny-s, lutra-tiny-moe, lutra-tiny-prm; did you mean lutra-tiny-l?"},
		{"serve --addr nowhere", `lutra serve: --addr: "nowhere" is not of the form host:port`},
		{"ask", "lutra ask: QUESTION is missing"},
		{"ask one two", `lutra ask: takes one argument, got 2; put it in quotes: "one two"`},
		{"ask --model a=none.gguf hi", "lutra ask: --model: there is no file none.gguf"},
		{"ask --temperature warm hi", `lutra ask: --temperature: found "warm", want a number`},
		{"ask --seed -1 hi", `lutra ask: --seed: found "-1", want a whole number, not negative`},
		{"ask --scaling bon hi", `lutra ask: --scaling: there is no method "bon"; there are`},
		{"ask --scaling bon100 hi", "lutra ask: --scaling: n: 100 is more than"},
		{"info", "lutra info: FILE is missing"},
		{"health --url nowhere", `lutra health: --url: "nowhere" is not an address`},
		{"serve --draft-model lutra-tinys", "lutra serve: --draft-model: there is no file lutra-tinys; embedded models: lutra-tiny-l, lutra-tiny-s, lutra-tiny-moe, lutra-tiny-prm; did you mean lutra-tiny-s?"},
	} {
		status, got := complain(t, strings.Fields(c.line)...)
		command, _, _ := strings.Cut(c.want, ":")
		if status != 2 || !strings.Contains(got, c.want) || !strings.Contains(got, "Run '"+command+" --help' for usage.\n") {
			t.Errorf("lutra %s: status %d\n%s\nwant 2 and %s", c.line, status, got, c.want)
		}
		if n := strings.Count(got, "\n"); n > 2 {
			t.Errorf("lutra %s: %d lines of error", c.line, n)
		}
	}
}

func TestAMissingServerIsReportedInWords(t *testing.T) {
	for _, command := range []string{"health", "ask hi", "chat"} {
		status, got := complain(t, append(strings.Fields(command), "--url", "http://127.0.0.1:1")...)
		if status != 1 || !strings.Contains(got, "no server answers at http://127.0.0.1:1") || strings.Count(got, "127.0.0.1:1") > 2 || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: status %d, %s", command, status, got)
		}
	}
}

func TestAPortInUseIsReportedInWords(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := "lutra serve: another program listens on " + l.Addr().String() + "; choose another port with --addr HOST:PORT\n"
	if status, got := complain(t, "serve", "--addr", l.Addr().String()); status != 1 || got != want {
		t.Errorf("status %d, %s", status, got)
	}
}

func TestAFileThatIsNotAModelIsReportedAsWhatItIs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"model.safetensors": "\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":1}", "model.bin": "PK\x03\x04data", "old.bin": "lmgg\x01",
		"pointer.gguf": "version https://git-lfs.github.com/spec/v1\n", "page.gguf": "<!DOCTYPE html>", "notes.txt": "hello", "empty.gguf": "",
		"cut.gguf": "GGUF\x03\x00", "new.gguf": "GGUF\x63\x00\x00\x00" + strings.Repeat("\x00", 64),
	} {
		write(name, text)
	}
	write("a=b.gguf", "none")
	if err := os.Mkdir("models", 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join("models", "a.gguf"), "GGUF")
	for name, want := range map[string]string{
		"model.safetensors": "model.safetensors is a safetensors file; name its directory",
		"model.bin":         "model.bin is a PyTorch checkpoint",
		"old.bin":           "old.bin is a model in the format before GGUF",
		"pointer.gguf":      "git lfs pull",
		"page.gguf":         "page.gguf is a web page, not a model: the download went wrong",
		"notes.txt":         "notes.txt is not a GGUF file",
		"empty.gguf":        "empty.gguf is empty",
		"cut.gguf":          "cut.gguf: ",
		"new.gguf":          "version 99",
		"models":            "models is a directory; name one of its files: " + filepath.Join("models", "a.gguf"),
		"a=b.gguf":          "a=b.gguf is not a GGUF file",
		"emty.gguf":         "did you mean empty.gguf?",
	} {
		for _, line := range []string{"info", "ask --model"} {
			args := append(strings.Fields(line), name)
			if strings.HasPrefix(line, "ask") {
				args = append(args, "hello")
			}
			if status, got := complain(t, args...); status == 0 || !strings.Contains(got, want) || strings.Count(got, "\n") > 2 {
				t.Errorf("lutra %q: status %d\n%swant %s", args, status, got, want)
			}
		}
	}
}
