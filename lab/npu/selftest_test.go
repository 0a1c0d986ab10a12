package npu

import (
	"strings"
	"testing"
)

func TestAReportOfAnotherKindIsRefused(t *testing.T) {
	good := func(rest string) string { return `{"kind":"lutra npu selftest","format":1,` + rest + "}" }
	if _, err := ReadSelftest(strings.NewReader(good(`"times":[{"name":"x","value":1}]`))); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "{}", `{"kind":"lutra npu selftest","format":2}`, `[1]`, `{"kind":"lutra npu selftest","format":1,"times":3}`, strings.Repeat(" ", 1<<20+1),
		good(`"times":[{"name":"x","value":1e300}]`), good(`"times":[{"name":"x","value":-1}]`), good(`"times":[{"of":-1}]`),
		good(`"device":{"contexts":1000}`), good(`"times":[` + strings.Repeat("{},", 1000) + "{}]")} {
		if _, err := ReadSelftest(strings.NewReader(s)); err == nil {
			t.Errorf("%.40q is read", s)
		}
	}
}
