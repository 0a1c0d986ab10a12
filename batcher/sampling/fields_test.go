package sampling

import (
	"reflect"
	"testing"
)

// noRow are the fields of Params that are no numbers of how a token is drawn.
var noRow = map[string]string{
	"MaxTokens": "it ends an answer", "LogitBias": "a list", "DRYBreakers": "lists", "Constraint": "of the answer's format", "Seed": "of all draws",
	"Candidate": "of all draws", "Stop": "it ends an answer", "IgnoreEOS": "it ends an answer", "Logprobs": "it changes no token", "TopLogprobs": "it changes no token",
	"FlushEvery": "it changes how tokens come, not which",
}

func TestEveryNumberOfParamsAndOfConfigHasARow(t *testing.T) {
	var p Params
	var c Config
	params, configs := map[uintptr]string{}, map[uintptr]string{}
	for i := range Fields {
		f := &Fields[i]
		at, in := reflect.ValueOf(f.param(&p)).Pointer(), reflect.ValueOf(f.config(&c)).Pointer()
		if params[at] != "" || configs[in] != "" {
			t.Errorf("%s has the field of another row", f.Name)
		}
		params[at], configs[in] = f.Name, f.Name
		if f.Doc == "" || f.Hi == 0 || f.Most == 0 {
			t.Errorf("%s has no words or no bounds", f.Name)
		}
	}
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if row, why := params[v.Field(i).Addr().Pointer()], noRow[name]; (row == "") == (why == "") {
			t.Errorf("Params.%s has the row %q, and a reason to have none: %q", name, row, why)
		}
		delete(params, v.Field(i).Addr().Pointer())
	}
	v = reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		row := configs[v.Field(i).Addr().Pointer()]
		if json, yaml := field.Tag.Get("json"), field.Tag.Get("yaml"); json != row+",omitempty" || yaml != row {
			t.Errorf("Config.%s is %q in JSON and %q in the configuration, and its row is %q", field.Name, json, yaml, row)
		}
		delete(configs, v.Field(i).Addr().Pointer())
	}
	if len(params)+len(configs) > 0 {
		t.Errorf("rows without a field: %v, %v", params, configs)
	}
}
