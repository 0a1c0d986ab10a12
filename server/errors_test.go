package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
)

func TestMessagesToClientsNameNoPackage(t *testing.T) {
	for _, err := range []error{tts.ErrToken, tts.ErrTemplate, tts.ErrLogprobs, reward.ErrSteps, reward.ErrBlank} {
		if got := toFault(fmt.Errorf("%w: why", err)).Message; strings.Contains(got, "tts:") || strings.Contains(got, "reward:") {
			t.Errorf("a client reads %q", got)
		}
	}
}

func TestAModelWithoutNumbersIsNamedAsTheReason(t *testing.T) {
	got := toFault(fmt.Errorf("embed: %w", models.ErrNotFinite))
	if got.Status != http.StatusInternalServerError || got.Code != "model_not_finite" || !strings.Contains(got.Message, "infinite or NaN") {
		t.Errorf("a client reads %+v", got)
	}
}

func TestAnswersThatADeviceLostMayBeAskedForAgain(t *testing.T) {
	got := toFault(fmt.Errorf("tts: %w", &batcher.FaultError{Model: "m", Err: errors.New("secret")}))
	if got.Status != http.StatusServiceUnavailable || got.Code != "device_failed" || got.RetryAfter == 0 || strings.Contains(got.Message, "secret") {
		t.Errorf("a client reads %+v", got)
	}
}
