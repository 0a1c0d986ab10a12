package search_test

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/answer"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// stories are the questions that the project shows its users, each with the
// file that shows it: whoever tries one must get the right answer.
var stories = []struct {
	shown, text string
	answer      int
}{
	{"internal/cli/root.go", "A box holds 12 eggs. How many are in 7 boxes?", 84},
	{"internal/cli/ask.go", "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?", 84},
	{"docs/test-time-scaling.md", "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?", 84},
	{"docs/test-time-scaling.md", "What is 12 * 7?", 84},
	{"docs/api.md", "What is 12 * 7?", 84},
	{"docs/api.md", "Ines has 75 candies. She buys 3 bags with 12 candies each. Next, 3 friends take 14 candies each. She sells all of them for 4 dollars each. How many dollars does she get?", 276},
	{"README.md", "Ines has 75 candies. She buys 3 bags with 12 candies each. Next, 3 friends take 14 candies each. She sells all of them for 4 dollars each. How many dollars does she get?", 276},
	{"web/js/welcome.js", "There are 163 big seeds and 57 small seeds. They are shared equally among 5 children. Each of them already had 29 seeds. How many seeds does each of the children have now?", 73},
}

// searched are the questions that the page shows for a search: the likeliest
// single answer is wrong, the search finds the right one.
var searched = []struct {
	text   string
	answer int
	plan   string
}{
	{"There are 256 cups in Adam's room. Then he throws away 250 cups. Later he gets 6 boxes of 19 cups. Next, he finds 288 more cups. Adam likes the color blue. How many cups does he have in the end?", 408, "bon8"},
	{"James collects 22 candles. Paul collects half as many candles as James. Ada collects three times as many candles as Paul. Lily collects 46 more candles than Ada. How many candles are Lily's?", 79, "beam_search;n=16;width=4"},
	{"Diego starts with 368 seeds. He uses 81 seeds. Priya takes 116 of the seeds. He throws away 80 seeds. He sells 9 bags of 7 seeds. What is the number of seeds Diego has now?", 28, "beam_search;n=16;width=4"},
}

// everyday are questions as people type them.
var everyday = []struct {
	text   string
	answer int
}{
	{"12 eggs a box, 7 boxes, how many?", 84},
	{"I have 5 apples and eat 2. How many are left?", 3},
	{"Tom is 12 and his sister is 4 years younger, how old is she?", 8},
	{"3 pizzas cut into 8 slices each, how many slices", 24},
	{"A ticket costs $9. How much do 6 tickets cost?", 54},
	{"a box holds twelve eggs. how many are in seven boxes", 84},
	{"what is 12 times 7", 84},
	{"how many days are in 3 weeks?", 21},
	{"24 cookies for 6 kids, how many each?", 4},
	{"I had $20 and spent $7. How much is left?", 13},
}

// ask runs a strategy on a conversation whose last message is the question.
func ask(t *testing.T, s tts.Strategy, temperature float32, messages ...template.Message) string {
	t.Helper()
	return askSeeded(t, s, temperature, 1, messages...)
}

// askSeeded returns ask with a seed.
func askSeeded(t *testing.T, s tts.Strategy, temperature float32, seed uint64, messages ...template.Message) string {
	t.Helper()
	req := tts.Request{Prompt: tts.Prompt{Messages: messages}, Sampling: sampling.Params{Temperature: temperature, Seed: seed, MaxTokens: 256}}
	var text strings.Builder
	for e, err := range s.Run(t.Context(), &req) {
		if err != nil {
			t.Fatal(err)
		}
		d := ttstest.Flatten(e)
		text.WriteString(d.Text)
	}
	return text.String()
}

func user(text string) template.Message { return template.Message{Role: "user", Content: text} }

// isRight reports whether a reply's final answer is the number want.
func isRight(t *testing.T, reply string, want int) bool {
	t.Helper()
	reader, err := answer.Rule{}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := reader.Read(reply)
	return ok && got.Key == reader.Key(strconv.Itoa(want))
}

func TestEveryStoryShownToUsersIsStillShown(t *testing.T) {
	sweep.NoRace(t)
	for _, s := range stories {
		shown, err := os.ReadFile("../../" + s.shown)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(shown), s.text) {
			t.Errorf("%s does not show %q any more: take it out of the table, and put in what it shows now", s.shown, s.text)
		}
	}
}

func TestEveryStoryShownToUsersIsAnsweredRightlyByEveryMethod(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	m, v := tiny(t, "lutra-tiny-l")
	for _, s := range stories {
		if got := ask(t, tts.Single{Model: m}, 0, user(s.text)); !isRight(t, got, s.answer) {
			t.Errorf("greedy: %q is answered %q, want %d", s.text, got, s.answer)
		}
		for _, written := range []string{"bon8", "beam_search;n=16;width=4", "sc8", "dvts16x4", "auto"} {
			if got := ask(t, Search{Model: m, Plan: plan(t, written), Verifiers: v}, 0.8, user(s.text)); !isRight(t, got, s.answer) {
				t.Errorf("%s: %q is answered %q, want %d", written, s.text, got, s.answer)
			}
		}
	}
}

func TestTheSearchExamplesAreWonByTheSearchAlone(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	m, v := tiny(t, "lutra-tiny-l")
	shown, err := os.ReadFile("../../web/js/welcome.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range searched {
		if !strings.Contains(string(shown), s.text) {
			t.Errorf("the page does not show %q any more: take it out of the table, and put in what it shows now", s.text)
		}
		if got := ask(t, tts.Single{Model: m}, 0, user(s.text)); isRight(t, got, s.answer) {
			t.Errorf("greedy: %q is answered %q: the example shows nothing", s.text, got)
		}
		for seed := uint64(1); seed <= uint64(sweep.Of(t, 3, 8)); seed++ {
			if got := askSeeded(t, Search{Model: m, Plan: plan(t, s.plan), Verifiers: v}, 0.8, seed, user(s.text)); !isRight(t, got, s.answer) {
				t.Errorf("%s, seed %d: %q is answered %q, want %d", s.plan, seed, s.text, got, s.answer)
			}
		}
	}
}

func TestEverydayQuestionsAreAnsweredRightly(t *testing.T) {
	sweep.NoRace(t)
	for _, name := range []string{"lutra-tiny-l", "lutra-tiny-s"} {
		m, _ := tiny(t, name)
		for _, q := range everyday {
			if got := ask(t, tts.Single{Model: m}, 0, user(q.text)); !isRight(t, got, q.answer) {
				t.Errorf("%s: %q is answered %q, want %d", name, q.text, got, q.answer)
			}
		}
	}
}

func TestWhatTheModelsProposeToAskTheyCanAnswer(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for _, name := range []string{"lutra-tiny-l", "lutra-tiny-s"} {
		m, _ := tiny(t, name)
		for _, q := range []string{"what can you do?", "help", "Give me an example.", "How does this work?", "What should I ask?"} {
			reply := ask(t, tts.Single{Model: m}, 0, user(q))
			_, story, proposes := strings.Cut(reply, "For example: ")
			if !proposes {
				_, story, proposes = strings.Cut(reply, "Try: ")
			}
			want, known := map[string]int{
				"Tom has 12 apples and buys 5 more. How many apples does he have?": 17,
				"Mia has 30 cards and gives 12 away. How many are left?":           18,
			}[story]
			if !proposes || !known {
				t.Errorf("%s: %q is answered %q, want a story to ask", name, q, reply)
				continue
			}
			if got := ask(t, tts.Single{Model: m}, 0, user(story)); !isRight(t, got, want) {
				t.Errorf("%s proposes %q and answers it %q, want %d", name, story, got, want)
			}
		}
	}
}

func TestWhatIsTooHardIsRefusedPolitely(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for _, name := range []string{"lutra-tiny-l", "lutra-tiny-s"} {
		m, _ := tiny(t, name)
		for _, q := range []string{"what's 15% of 80", "What is the square root of 81?", "Write a poem about the sea."} {
			if got := ask(t, tts.Single{Model: m}, 0, user(q)); !strings.Contains(got, "orry") || strings.Contains(got, "Answer") {
				t.Errorf("%s: %q is answered %q, want an apology", name, q, got)
			}
		}
	}
}

// A conversation's later questions are answered as the first one, new ones and
// those that go on from the answer before.
func TestLaterQuestionsOfAConversationAreAnsweredRightly(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	type turn struct {
		text   string
		answer int
	}
	m, _ := tiny(t, "lutra-tiny-l")
	for _, turns := range [][]turn{
		{{"A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?", 84}, {"And with 9 boxes?", 108}, {"What if she had 20 more?", 128}},
		{{"I have 5 apples and eat 2. How many are left?", 3}, {"how many would 3 of my friends have together?", 9}, {"and if each costs $3?", 27}},
		{{"A ticket costs $9. How much do 6 tickets cost?", 54}, {"thanks", 0}, {"Tom is 12 and his sister is 4 years younger, how old is she?", 8}, {"What is 12 * 7?", 84}},
		{{stories[5].text, 276}, {stories[7].text, 73}, {"12 eggs a box, 7 boxes, how many?", 84}, {"In a hall there are 5 rows and each has 18 seats. Then 26 seats are taken away. Then 136 seats are added. How many seats are there now?", 200}},
	} {
		var history []template.Message
		for i, q := range turns {
			history = append(history, user(q.text))
			reply := ask(t, tts.Single{Model: m}, 0, history...)
			if q.answer != 0 && !isRight(t, reply, q.answer) {
				t.Errorf("turn %d: %q is answered %q, want %d", i+1, q.text, reply, q.answer)
			}
			history = append(history, template.Message{Role: "assistant", Content: cmp.Or(reply, " ")})
		}
	}
}
