package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// All texts about a field of a request are made by these functions.
func TestNoTextAboutAFieldNamesAPackage(t *testing.T) {
	err := fmt.Errorf("scaling: a pattern: %w", errors.New("regex: it is open"))
	var f jsonread.Fields
	f.Fail(jsonread.CodeValue, "name", "%v.", err)
	var failed *jsonread.Error
	if !errors.As(f.Err, &failed) {
		t.Fatalf("Fail has made %v", f.Err)
	}
	for what, text := range map[string]string{
		"Fields.Fail":     failed.Message,
		"jsonread.Errorf": jsonread.Errorf(jsonread.CodeValue, "name", "%v.", err).Message,
		"api.Invalid":     api.Invalid(jsonread.CodeValue, "name", "%v.", err).Message,
		"scaling.Errorf":  scaling.Errorf(scaling.CodeValue, "name", "%v.", err).Message,
	} {
		if !strings.HasSuffix(text, "a pattern: it is open.") || strings.Contains(text, "scaling") {
			t.Errorf("%s says %q", what, text)
		}
	}
}
