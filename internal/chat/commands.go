package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// chatCommand is a command: a line that begins with a slash.
type chatCommand struct {
	names []string // the first is the one that /help shows
	arg   string
	words string
	// now is the present value of what the command changes; nil: it changes nothing.
	now    func(*session) string
	offers func(*session) []string // what the argument may be, for the completion; nil: anything
	run    func(ctx context.Context, c *session, arg string) error
}

func chatCommands() []chatCommand {
	return []chatCommand{
		{names: []string{"/help", "/?"}, words: "this list", run: showHelp},
		{names: []string{"/model"}, arg: "[NAME]", words: "change the model; alone: list the models",
			now: func(c *session) string { name, _ := c.About(); return name }, offers: modelNames, run: setModel},
		{names: []string{"/system"}, arg: "[TEXT]", words: "set the system message; none: remove it",
			now: func(c *session) string { return c.options.System }, run: setSystem},
		{names: []string{"/set"}, arg: "[NAME [VALUE]]", words: "change a setting of the sampling or the search; alone: list them",
			offers: func(*session) []string { return settingNames() }, run: changeSetting},
		{names: []string{"/search", "/scaling"}, arg: "[PLAN]", words: "search for answers, as with bon8, beam16x4 or METHOD N WIDTH; none: do not search",
			now: func(c *session) string { return c.options.Scaling }, offers: func(*session) []string { return planNames() }, run: setScaling},
		{names: []string{"/tools"}, arg: "[FILE]", words: "list the tools that the model may call, or read them from a file; none: remove them",
			run: setTools},
		{names: []string{"/show"}, words: "the model, the settings and the conversation's length", run: showSettings},
		{names: []string{retryCommand}, words: "answer the last question again with another seed"}, // run asks, with the signals
		{names: []string{"/undo"}, words: "forget the last question and its answer", run: undoLast},
		{names: []string{"/clear"}, words: "forget the conversation", run: forgetTurns},
		{names: []string{"/save"}, arg: "NAME", words: "keep the conversation", offers: func(*session) []string { return transcripts() }, run: keepTurns},
		{names: []string{"/load"}, arg: "[NAME]", words: "go on with a kept one; alone: list them", offers: func(*session) []string { return transcripts() }, run: goOnWith},
		{names: []string{"/bye", "/quit", "/exit"}, words: "leave, as Ctrl-D does",
			run: func(context.Context, *session, string) error { return errLeave }},
	}
}

// retryCommand asks, as a question does.
const retryCommand = "/retry"

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
		case arg == "" && known.arg != "" && known.arg[0] != '[':
			return fmt.Errorf("%s: %s is missing", name, known.arg)
		default:
			return known.run(ctx, c, arg)
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

func showHelp(_ context.Context, c *session, _ string) error {
	tw := tabwriter.NewWriter(c.notices(), 0, 0, 2, ' ', 0)
	for _, k := range chatCommands() {
		now := ""
		if k.now != nil {
			now = fmt.Sprintf(" (now: %s)", cmp.Or(usage.Brief(k.now(c)), NoScaling))
		}
		fmt.Fprintf(tw, "%s\t%s%s\n", strings.TrimSpace(k.names[0]+" "+k.arg), k.words, now)
	}
	fmt.Fprintf(tw, "%s\tbegins a text of several lines, and ends it\n", textMark)
	fmt.Fprintf(tw, "%s\tat a line's end, or Alt-Enter: another line follows\n", lineMark)
	fmt.Fprintf(tw, "Ctrl-C\tstops the answer; twice: leaves\n")
	return tw.Flush()
}

func forgetTurns(_ context.Context, c *session, _ string) error {
	c.turns, c.forgetful = nil, false
	return c.say("(forgotten)")
}

func setSystem(_ context.Context, c *session, arg string) error {
	switch arg {
	case "":
		return c.say("system message: %s", cmp.Or(c.options.System, NoScaling))
	case NoScaling:
		arg = ""
	}
	c.options.System = arg
	return c.say("(system message: %s)", cmp.Or(usage.Brief(arg), NoScaling))
}

func setModel(ctx context.Context, c *session, arg string) error {
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

func modelNames(c *session) []string {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	names, _ := c.Models(ctx) // who completes a line does not want to hear why there are none
	return names
}

func planNames() []string {
	return append([]string{"bon8", "sc16", "beam16x4"}, scaling.Names()...)
}

func settingNames() (list []string) {
	for _, s := range settings() {
		list = append(list, s.name)
		for _, value := range s.offers {
			list = append(list, s.name+" "+value)
		}
	}
	return list
}

func setScaling(_ context.Context, c *session, arg string) error {
	if arg == "" {
		return c.say("search: %s", c.options.searchWords())
	}
	plan, err := written(strings.Fields(arg))
	if strings.ContainsAny(arg, `;="`) {
		plan, err = arg, nil
	}
	if err == nil {
		err = c.search(plan)
	}
	if err != nil {
		return err
	}
	return c.say("(search: %s)", c.options.searchWords())
}

// searchWords says what is searched, with the number of candidates and the width.
func (o *Options) searchWords() string {
	if o.Scaling == "" {
		return NoScaling
	}
	plan := o.plan()
	if plan.Method == "" || plan.Unchosen() {
		return o.Scaling // the answerer chooses
	}
	plan = plan.WithDefaults(&noLimits)
	words := string(plan.Method)
	switch {
	case plan.Method == scaling.None:
	case plan.N == scaling.AutoN:
		words += ", n auto"
	default:
		words += fmt.Sprintf(", n %d", plan.N)
	}
	if plan.Method.Beams() {
		words += fmt.Sprintf(", width %d", plan.Width)
	}
	if short, ok := scaling.Preset(o.Scaling); !ok || short.Method == scaling.Auto {
		words += " (" + o.Scaling + ")"
	}
	return words
}

// changeSetting shows settings, or changes one. Users of Ollama write parameter before its name.
func changeSetting(_ context.Context, c *session, arg string) error {
	name, value, valued := strings.Cut(strings.TrimSpace(strings.TrimPrefix(arg+" ", "parameter ")), " ")
	value = strings.TrimSpace(value)
	if name == "" {
		tw := tabwriter.NewWriter(c.notices(), 0, 0, 2, ' ', 0)
		for _, s := range settings() {
			fmt.Fprintf(tw, "%s\t%s\t%s\n", s.name, cmp.Or(s.now(c.options), byDefault), s.words)
		}
		return tw.Flush()
	}
	s, err := settingNamed(name)
	if err != nil {
		return err
	}
	if !valued || value == "" {
		return c.say("%s: %s (%s)", s.name, cmp.Or(s.now(c.options), byDefault), s.words)
	}
	if err := s.set(c, value); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return c.say("(%s: %s)", s.name, cmp.Or(s.now(c.options), byDefault))
}

func setTools(_ context.Context, c *session, arg string) error {
	switch arg {
	case "":
	case NoScaling:
		c.options.Tools = nil
	default:
		tools, err := ReadTools(arg)
		if err != nil {
			return err
		}
		c.options.Tools = tools
		if err := c.options.CheckTools(); err != nil {
			c.options.Tools = nil
			return err
		}
	}
	clear(c.agreed) // of another file's commands nobody has seen one
	if len(c.options.Tools) == 0 {
		return c.say("tools: none")
	}
	tw := tabwriter.NewWriter(c.notices(), 0, 0, 2, ' ', 0)
	for _, t := range c.options.Tools {
		fmt.Fprintf(tw, "%s\t%s\n", t.Name, cmp.Or(output.OneLine(strings.Join(t.Command, " ")), "(you say what it returns)"))
	}
	return tw.Flush()
}

// showSettings prints what answers are made with.
func showSettings(_ context.Context, c *session, _ string) error {
	name, words := c.About()
	fmt.Fprintf(c.notices(), "model: %s: %s\nsystem: %s\nsearch: %s\n", name, words, cmp.Or(c.options.System, NoScaling), c.options.searchWords())
	for _, s := range settings() {
		if now := s.now(c.options); now != "" && !ofPlan(s.name) {
			fmt.Fprintf(c.notices(), "%s: %s\n", s.name, now)
		}
	}
	return c.say("tools: %d\nmessages: %d", len(c.options.Tools), len(c.turns))
}

// lastQuestion returns where the last question stands among the messages; -1: nowhere.
func (c *session) lastQuestion() int {
	for i := len(c.turns) - 1; i >= 0; i-- {
		if c.turns[i].Role == RoleUser {
			return i
		}
	}
	return -1
}

func undoLast(_ context.Context, c *session, _ string) error {
	i := c.lastQuestion()
	if i < 0 {
		return errNoQuestion
	}
	question := c.turns[i].Content
	c.turns = c.turns[:i]
	return c.say("(forgotten: %s)", output.OneLine(usage.Brief(question)))
}

var errNoQuestion = errors.New("there is no question before")

// retry asks the last question again. Its answer takes the place of the former one, once it is
// there.
func (c *session) retry(ctx context.Context, signals <-chan os.Signal) error {
	i := c.lastQuestion()
	if i < 0 {
		return errNoQuestion
	}
	if c.Greedy(c.options) {
		if err := c.say("(at temperature 0 the answer is the same: /set temperature 0.7)"); err != nil {
			return err
		}
	}
	was := c.turns
	c.options.Seed = (c.options.Seed + 1) & math.MaxInt64
	c.turns = c.turns[:i]
	err := c.ask(ctx, was[i].Content, signals)
	if len(c.turns) == i {
		c.turns = was
	}
	return err
}

func keepTurns(_ context.Context, c *session, name string) error {
	path, err := saveTranscript(c, name)
	if err != nil {
		return err
	}
	return c.say("(kept in %s; /load %s goes on with it)", path, name)
}

func goOnWith(ctx context.Context, c *session, name string) error {
	if name == "" {
		return c.say("conversations: %s", cmp.Or(strings.Join(transcripts(), ", "), NoScaling))
	}
	t, err := loadTranscript(c, name)
	if err != nil {
		return err
	}
	if now, _ := c.About(); t.Model != now && t.Model != "" {
		if err := c.Use(ctx, t.Model); err != nil {
			fmt.Fprintf(c.notices(), "(%s answers from now on: %s)\n", now, errtext.Text(err))
		}
	}
	return c.say("(%d messages; /show has the settings)", len(c.turns))
}

// complete lists what a line may become: a command, ready for its argument, or one with an
// argument that it may have.
func (c *session) complete(line string) (list []string) {
	if line == "" {
		return nil
	}
	for _, k := range chatCommands() {
		for _, name := range k.names {
			if k.arg != "" {
				name += " "
			}
			if strings.HasPrefix(name, line) {
				list = append(list, name)
			}
			if _, begun := strings.CutPrefix(line, name); !begun || k.offers == nil {
				continue
			}
			for _, value := range k.offers(c) {
				if strings.HasPrefix(name+value, line) && name+value != line {
					list = append(list, name+value)
				}
			}
		}
	}
	return list
}
