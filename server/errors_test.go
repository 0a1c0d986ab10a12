package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
)

func TestMessagesToClientsNameNoPackage(t *testing.T) {
	for _, err := range []error{tts.ErrToken, tts.ErrTemplate, tts.ErrLogprobs, reward.ErrSteps, reward.ErrBlank} {
		if got := toAPI(fmt.Errorf("%w: why", err)).Message; strings.Contains(got, "tts:") || strings.Contains(got, "reward:") {
			t.Errorf("a client reads %q", got)
		}
	}
}
