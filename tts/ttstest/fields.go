package ttstest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Fields calls each with every field of a struct that v points to, and of the structs in it, by its
// path and a number. What a structure on the wire forgets is found by setting one after the other.
func Fields(v any, each func(path string, i int, field reflect.Value)) {
	i := 0
	walk("", reflect.ValueOf(v).Elem(), func(path string, field reflect.Value) {
		each(path, i, field)
		i++
	})
}

func walk(path string, v reflect.Value, each func(path string, field reflect.Value)) {
	for i := range v.NumField() {
		name, field := path+v.Type().Field(i).Name, v.Field(i)
		if field.Kind() == reflect.Struct {
			walk(name+".", field, each)
			continue
		}
		each(name, field)
	}
}

// Field returns the field of a path as Fields has it; false: there is none.
func Field(v any, path string) (found reflect.Value, ok bool) {
	Fields(v, func(p string, _ int, field reflect.Value) {
		if p == path {
			found, ok = field, true
		}
	})
	return found, ok
}

// Fill sets the i-th field to a value that is not zero and that no other field of its kind gets. Real
// numbers are between 1/2 and 1.
func Fill(t testing.TB, i int, field reflect.Value) {
	t.Helper()
	real := 0.5 + float64(i+1)/128
	switch v := field.Addr().Interface().(type) {
	case *json.RawMessage:
		*v = fmt.Appendf(nil, `{"title":"%d"}`, i)
		return
	case *time.Duration:
		*v = time.Duration(i+3) * time.Millisecond
		return
	case **sampling.Breakers:
		*v = sampling.NewBreakers([]int32{int32(i + 3)}, nil)
		return
	case *sampling.TokenSet:
		*v = sampling.NewTokenSet([]int32{int32(i + 3)})
		return
	case *map[int32]float32:
		*v = map[int32]float32{int32(i + 3): float32(real)}
		return
	case *[]string:
		*v = []string{fmt.Sprint("word", i)}
		return
	case *[]float64:
		*v = []float64{real}
		return
	case **float32:
		*v = new(float32(real))
		return
	case *sampling.Constraint:
		*v = anything{}
		return
	}
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(true)
	case reflect.String:
		field.SetString(fmt.Sprint("word", i))
	case reflect.Int:
		field.SetInt(int64(i + 3))
	case reflect.Uint64:
		field.SetUint(1<<63 + uint64(i))
	case reflect.Float32, reflect.Float64:
		field.SetFloat(real)
	default:
		t.Fatalf("a field is of type %v, which nobody fills", field.Type())
	}
}

// anything is a constraint that allows every token.
type anything struct{ sampling.Constraint }
