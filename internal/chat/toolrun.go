package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
)

// Bounds of a tool's command, and of the rounds of calls after one question.
const (
	toolTime   = 30 * time.Second
	toolOutput = 64 << 10 // bytes that the model reads
	toolShown  = 800      // characters of them that the user sees
	mostAsked  = 4000     // characters of a call's arguments
	mostRounds = 16
)

// keyVariables are not for commands of tools.
var keyVariables = []string{"LUTRA_API_KEY", "OPENAI_API_KEY"}

// runTool runs the command of a tool, without a shell. The call's arguments are its input; its output,
// or its failure, is the result. Only ctx makes an error.
func runTool(ctx context.Context, command []string, arguments string) (string, error) {
	running, stop := context.WithTimeout(ctx, toolTime)
	defer stop()
	cmd := exec.CommandContext(running, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(arguments)
	out := &head{left: toolOutput}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(keyVariables, name)
	})
	cmd.WaitDelay = time.Second // for children that keep the output open
	endWithChildren(cmd)
	err := cmd.Run()
	result := strings.ToValidUTF8(out.text.String(), "\ufffd")
	if out.cut {
		result += fmt.Sprintf("\n(cut off after %d bytes)", toolOutput)
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case running.Err() != nil:
		result += fmt.Sprintf("\n(error: stopped after %v)", toolTime)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		result += fmt.Sprintf("\n(error: %v)", err)
	}
	return strings.TrimSpace(result), nil
}

// head keeps the beginning of what is written.
type head struct {
	text bytes.Buffer
	left int
	cut  bool
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	h.cut = h.cut || n < len(p)
	h.text.Write(p[:n])
	return len(p), nil
}

// carryOut shows calls and has each carried out, by its command if the user agrees, or by the
// user. It returns the tools' messages.
func (c *session) carryOut(ctx context.Context, calls []Call, signals <-chan os.Signal) (results []Message, err error) {
	for i := range calls {
		result, err := c.callTool(ctx, &calls[i], signals)
		if err != nil {
			return nil, err
		}
		results = append(results, Message{Role: RoleTool, Content: result, CallID: calls[i].ID})
	}
	return results, nil
}

func (c *session) callTool(ctx context.Context, call *Call, signals <-chan os.Signal) (string, error) {
	name := call.Function.Name
	fmt.Fprintf(c.notices(), "%s %s\n", output.OneLine(name), output.Shortened(output.OneLine(call.Function.Arguments), mostAsked))
	i := slices.IndexFunc(c.options.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		fmt.Fprintf(c.notices(), "(there is no tool %s)\n", output.OneLine(name))
		return "There is no tool of this name.", nil
	}
	command := c.options.Tools[i].Command
	if command == nil {
		return c.line("its result: ", false, signals)
	}
	if !c.agreed[name] {
		said, err := c.line(fmt.Sprintf("run %s? [y]es, [N]o, [a]lways: ", output.OneLine(strings.Join(command, " "))), false, signals)
		if err != nil {
			return "", err
		}
		switch strings.ToLower(strings.TrimSpace(said)) {
		case "a", "always":
			c.agreed[name] = true
		case "y", "yes":
		default:
			return "The user does not allow this call.", nil
		}
	}
	ctx, stop := interruptible(ctx, signals)
	defer stop()
	result, err := runTool(ctx, command, call.Function.Arguments)
	if err == nil {
		fmt.Fprintln(c.notices(), output.Shortened(output.WithoutControls(result), toolShown))
	}
	return result, err
}
