package cli

import "testing"

func TestRequestsShareTheirSystemMessageAndNothingElse(t *testing.T) {
	o := loadOptions{promptWords: 10, first: 3}
	if got := o.messages(1); len(got) != 1 || got[0].Role != "user" || got[0].Content != loadPrompt(4, 10) {
		t.Errorf("messages(1) = %+v, want the question 4 alone", got)
	}
	o.systemWords = 60
	a, b := o.messages(1), o.messages(2)
	if len(a) != 2 || len(b) != 2 || a[0].Content != b[0].Content || a[0].Role != "system" || a[1].Content == b[1].Content {
		t.Errorf("messages(1), messages(2) = %+v, %+v, want two questions behind one system message", a, b)
	}
}
