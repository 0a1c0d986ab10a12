package chat

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/lutra-lm/lutra/internal/usage"
)

// chatCommand is a command: a line that begins with a slash.
type chatCommand struct {
	names []string // the first is the one that /help shows
	arg   string
	words string
	// now is the present value of what the command changes; nil: it changes nothing.
	now func(*session) string
	run func(c *session, ctx context.Context, arg string) error
}

// scalingCommand chooses a search.
const scalingCommand = "/scaling"

func chatCommands() []chatCommand {
	return []chatCommand{
		{names: []string{"/help", "/?"}, words: "this list", run: (*session).help},
		{names: []string{"/clear"}, words: "forget the conversation", run: (*session).clear},
		{names: []string{"/system"}, arg: "[TEXT]", words: "set the system message; none: remove it",
			now: func(c *session) string { return c.options.System }, run: (*session).setSystem},
		{names: []string{"/model"}, arg: "[NAME]", words: "change the model; alone: list the models",
			now: func(c *session) string { name, _ := c.About(); return name }, run: (*session).setModel},
		{names: []string{scalingCommand}, arg: "[PLAN]", words: "search for answers, as with bon8, sc16 or beam16x4; none: do not search",
			now: func(c *session) string { return c.options.Scaling }, run: (*session).setScaling},
		{names: []string{"/temperature"}, arg: "[T]", words: "sampling temperature, 0 for the likeliest answer",
			now: func(c *session) string { return fmt.Sprint(c.options.samplingTemperature()) }, run: (*session).setTemperature},
		{names: []string{"/quit", "/exit", "/bye"}, words: "leave, as Ctrl-D does",
			run: func(*session, context.Context, string) error { return errLeave }},
	}
}

// commandLine is a slash and a word, alone or with an argument. Paths such as
// /etc/hosts are text.
var commandLine = regexp.MustCompile(`^(/(?:[a-z][a-z0-9]*|\?))(?:\s+(.*))?$`)

func commandOf(line string) (name, arg string, ok bool) {
	m := commandLine.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	return m[1], strings.TrimSpace(m[2]), true
}

func commandNames() (names []string) {
	for _, c := range chatCommands() {
		names = append(names, c.names...)
	}
	return names
}

// command runs a command.
func (c *session) command(ctx context.Context, name, arg string) error {
	for _, known := range chatCommands() {
		switch {
		case !slices.Contains(known.names, name):
		case arg != "" && known.arg == "":
			return fmt.Errorf("%s takes no argument", name)
		default:
			return known.run(c, ctx, arg)
		}
	}
	hint := cmp.Or(usage.DidYouMean(name, commandNames()), "; /help lists them")
	return fmt.Errorf("there is no command %s%s", name, hint)
}

// say prints a notice.
func (c *session) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.notices(), format+"\n", args...)
	return err
}

func (c *session) help(context.Context, string) error {
	tw := tabwriter.NewWriter(c.notices(), 0, 0, 2, ' ', 0)
	for _, k := range chatCommands() {
		now := ""
		if k.now != nil {
			now = fmt.Sprintf(" (now: %s)", cmp.Or(usage.Brief(k.now(c)), NoScaling))
		}
		fmt.Fprintf(tw, "%s\t%s%s\n", strings.TrimSpace(k.names[0]+" "+k.arg), k.words, now)
	}
	fmt.Fprintf(tw, "%s\tbegins a text of several lines, and ends it\n", textMark)
	fmt.Fprintf(tw, "Ctrl-C\tstops the answer\n")
	return tw.Flush()
}

func (c *session) clear(context.Context, string) error {
	c.turns, c.forgetful = nil, false
	return c.say("(forgotten)")
}

func (c *session) setSystem(_ context.Context, arg string) error {
	switch arg {
	case "":
		return c.say("system message: %s", cmp.Or(c.options.System, NoScaling))
	case NoScaling:
		arg = ""
	}
	c.options.System = arg
	return c.say("(system message: %s)", cmp.Or(usage.Brief(arg), NoScaling))
}

func (c *session) setModel(ctx context.Context, arg string) error {
	now, _ := c.About()
	if arg == "" {
		names, err := c.Models(ctx)
		if err != nil {
			return err
		}
		return c.say("model: %s, of %s", now, strings.Join(names, ", "))
	}
	if err := c.Use(ctx, arg); err != nil {
		return err
	}
	name, words := c.About()
	return c.say("(%s: %s)", name, words)
}

func (c *session) setScaling(_ context.Context, arg string) error {
	switch arg {
	case "":
		return c.say("scaling: %s", cmp.Or(c.options.Scaling, NoScaling))
	case NoScaling:
		arg = ""
	default:
		if err := c.CanSearch(arg); err != nil {
			return err
		}
	}
	c.options.Scaling = arg
	return c.say("(scaling: %s)", cmp.Or(arg, NoScaling))
}

func (c *session) setTemperature(_ context.Context, arg string) error {
	if arg == "" {
		return c.say("temperature: %v", c.options.samplingTemperature())
	}
	t, err := strconv.ParseFloat(arg, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number", usage.Brief(arg))
	}
	if err := CheckTemperature(float32(t)); err != nil {
		return err
	}
	c.options.Temperature, c.options.TemperatureSet = float32(t), true
	return c.say("(temperature: %v)", t)
}
