package jsonread

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Struct reads a struct as encoding/json would, and faults name the field, as in choices[3].tokens.
// What a field may hold is in its tags:
//
//	max:"4096"   of an int; bytes of a json.RawMessage, which is an object; elements of a list
//	sha256:""    a string of 64 hexadecimal digits
//	long:""      a string that only the size of the text bounds
//
// Numbers are finite, integers are not negative, token ids are []int32. An Unmarshaler reads itself, and
// a Checker is checked once it has been read. Types that it
// does not know are a mistake of the program.
func (f *Fields) Struct(dst any) {
	v := reflect.ValueOf(dst).Elem()
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		if name, _, _ := strings.Cut(tag.Get("json"), ","); name != "" {
			readMember(f, name, tag, field)
		}
	}
	if c, ok := dst.(Checker); ok && f.Err == nil {
		c.Check(f)
	}
}

// Unmarshaler reads itself from an object.
type Unmarshaler interface{ UnmarshalFields(o *Fields) }

// Checker says in the object that it was read from what is wrong with it.
type Checker interface{ Check(o *Fields) }

// readMember reads the field of a name into v.
func readMember(f *Fields, name string, tag reflect.StructTag, v reflect.Value) {
	most := math.MaxInt32
	if text, ok := tag.Lookup("max"); ok {
		most, _ = strconv.Atoi(text)
	}
	switch dst := v.Addr().Interface().(type) {
	case Unmarshaler:
		f.In(name, dst.UnmarshalFields)
	case *json.RawMessage:
		readObject(f, name, dst, most)
	case *string:
		readShortText(f, name, tag, dst)
	case *int:
		f.Int(name, dst, 0, most)
	case *bool:
		f.Bool(name, dst)
	case *float32:
		f.Float32(name, dst, -math.MaxFloat32, math.MaxFloat32)
	case *[]int32:
		*dst = f.IDs(name, most, math.MaxInt32)
	case *[]string:
		*dst = readStrings(f, name, most)
	case *[]float32:
		*dst = readNumbers(f, name, most)
	default:
		readCompound(f, name, tag, most, v)
	}
}

// readCompound reads a struct, a list of structs, or a pointer.
func readCompound(f *Fields, name string, tag reflect.StructTag, most int, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		f.In(name, func(o *Fields) { o.Struct(v.Addr().Interface()) })
	case reflect.Pointer:
		if f.Has(name) {
			v.Set(reflect.New(v.Type().Elem()))
			readMember(f, name, tag, v.Elem())
		}
		f.Ignore(name) // null
	case reflect.Slice:
		for _, o := range f.Each(name, most) {
			element := reflect.New(v.Type().Elem())
			o.Struct(element.Interface())
			v.Set(reflect.Append(v, element.Elem()))
		}
	default:
		panic("jsonread: no field can be of type " + v.Type().String())
	}
}

// readShortText reads a string, which is short unless its tag says otherwise.
func readShortText(f *Fields, name string, tag reflect.StructTag, dst *string) {
	if _, long := tag.Lookup("long"); long {
		f.Text(name, dst)
		return
	}
	f.String(name, dst)
	if _, sum := tag.Lookup("sha256"); sum && *dst != "" && (len(*dst) != 64 || strings.Trim(*dst, "0123456789abcdef") != "") {
		f.Fail(CodeValue, name, "expected 64 hexadecimal digits, but got '%s'.", Brief(*dst))
	}
}

// readObject reads an object as it is written, of at most most bytes. There has to be one.
func readObject(f *Fields, name string, dst *json.RawMessage, most int) {
	raw, ok := f.Take(name)
	if !ok || Kind(raw) != "an object" || len(raw) > most {
		f.Fail(CodeType, name, "expected an object of at most %d bytes.", most)
		return
	}
	*dst = raw
}

// readStrings reads a list of names, or of texts as short.
func readStrings(f *Fields, name string, most int) (list []string) {
	items, _ := f.List(name, most)
	for _, raw := range items {
		s, ok := Text(raw)
		if !ok || len(s) > MaxString {
			f.WrongType(name, "a list of short strings", raw)
			return nil
		}
		list = append(list, s)
	}
	return list
}

// readNumbers reads a list of numbers.
func readNumbers(f *Fields, name string, most int) (list []float32) {
	items, _ := f.List(name, most)
	for i, raw := range items {
		x, err := strconv.ParseFloat(string(raw), 32)
		if err != nil {
			f.WrongType(fmt.Sprintf("%s[%d]", name, i), "a number", raw)
			return nil
		}
		list = append(list, float32(x))
	}
	return list
}
