package toolcall

import (
	"strconv"
	"strings"
	"testing"
)

func TestArgumentsThatMeanTheSameHaveOneForm(t *testing.T) {
	for want, all := range map[string][]string{
		`f({"a":1,"b":[2,"x"]})`:                {`{"a":1,"b":[2,"x"]}`, ` { "b" : [ 2.0 , "\u0078" ] , "a" : 10e-1 } `, `{"a":3,"a":1,"b":[2,"x"]}`},
		`f({"a":"<é/>"})`:                       {`{"a":"<é/>"}`, `{"a":"\u003c\u00e9\/>"}`},
		`f({"a":[0,0,0]})`:                      {`{"a":[0,-0,0.0e7]}`},
		`f({"a":[100,-0.25,1e+21,1.5e-7]})`:     {`{"a":[1E2,-25e-2,1000000000000000000000.0,0.00000015]}`},
		`f({"a":[9007199254740993]})`:           {`{"a":[9007199254740993]}`, `{"a":[9007199254740993.0]}`},
		`f({"a":[9007199254740992]})`:           {`{"a":[9007199254740992]}`},
		`f({"a":[null,true,{"b":{}},[]]})`:      {`{"a": [null, true, {"b": {}}, []]}`},
		`f({"a":1e99999999999})`:                {`{"a":1e99999999999}`},
		`f({"City":"Paris"})`:                   {`{"City":"Paris"}`},
		`f({"city":"PARIS"})`:                   {`{"city":"PARIS"}`},
		`f({"city":"Pa)`:                        {`{"city":"Pa`},
		`f({} {})`:                              {`{} {}`},
		`f(` + strings.Repeat("[", 20000) + `)`: {strings.Repeat("[", 20000)},
	} {
		for _, arguments := range all {
			c := Call{Name: "f", Arguments: arguments}
			if got := c.Canonical(); got != want {
				t.Errorf("%.80s is %.80s, want %.80s", arguments, got, want)
			}
		}
	}
}

func TestNumbersAreWrittenAsECMAScriptDoes(t *testing.T) {
	for _, s := range []string{"1e20", "1e21", "123456789e12", "123456789e13", "0.000001", "0.0000001", "1.25e-6", "-3.50", "5e-324", "12.5e1", "4.1e-5", "7e0"} {
		f, _ := strconv.ParseFloat(s, 64)
		want := strconv.FormatFloat(f, 'f', -1, 64)
		if a := max(f, -f); a < 1e-6 || a >= 1e21 {
			want = strconv.FormatFloat(f, 'e', -1, 64)
			want = strings.Replace(strings.Replace(want, "e-0", "e-", 1), "e+0", "e+", 1)
		}
		if got := canonicalNumber(s); got != want {
			t.Errorf("%s is %s, want %s", s, got, want)
		}
	}
}
