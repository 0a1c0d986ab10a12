package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"
)

func TestMB(t *testing.T) {
	dir := os.Getenv("MB")
	if dir == "" {
		t.Skip()
	}
	files, _ := filepath.Glob(dir + "/*.json")
	errs := map[string]int{}
	ex := map[string]string{}
	pass, refused, vr, ia := 0, 0, 0, 0
	var slow []string
	for _, f := range files {
		b, _ := os.ReadFile(f)
		var d struct {
			Schema json.RawMessage
			Tests  []struct {
				Valid bool
				Data  json.RawMessage
			}
		}
		if err := json.Unmarshal(b, &d); err != nil {
			continue
		}
		began := time.Now()
		g, err := Compile(d.Schema, Options{AnyOrder: os.Getenv("ANY") != ""})
		if el := time.Since(began); el > 200*time.Millisecond {
			slow = append(slow, fmt.Sprint(filepath.Base(f), " compile ", el, err))
		}
		if err != nil {
			refused++
			k := err.Error()
			if len(k) > 75 {
				k = k[:75]
			}
			errs[k]++
			ex[k] = filepath.Base(f)
			continue
		}
		began = time.Now()
		bad := false
		for i, c := range d.Tests {
			text := dump(c.Data)
			s, n, err := g.Start().Read(text)
			if err != nil {
				t.Log(f, err)
			}
			ok := n == len(text) && s.Accepts()
			if ok != c.Valid {
				bad = true
				if ok {
					ia++
					t.Log("INVALID ACCEPTED", filepath.Base(f), i)
				} else {
					vr++
					t.Log("VALID REFUSED", filepath.Base(f), i, n, string(text[max(0, n-60):n]), "<<>>", string(text[n:min(len(text), n+40)]))
				}
			}
		}
		if !bad {
			pass++
		}
		if el := time.Since(began); el > 200*time.Millisecond {
			slow = append(slow, fmt.Sprint(filepath.Base(f), " read ", el))
		}
	}
	fmt.Println("pass", pass, "refused", refused, "valid refused", vr, "invalid accepted", ia)
	var ks []string
	for k := range errs {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return errs[ks[i]] > errs[ks[j]] })
	for i, k := range ks {
		if i < 60 {
			fmt.Println(errs[k], k, ex[k])
		}
	}
	fmt.Println(slow)
}

func dump(raw []byte) []byte {
	v, _ := read(raw)
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

func write(b *bytes.Buffer, v *value) {
	switch v.kind {
	case nulls:
		b.WriteString("null")
	case booleans:
		fmt.Fprint(b, v.truth)
	case numbers:
		b.WriteString(v.text)
	case strs:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		var o bytes.Buffer
		e = json.NewEncoder(&o)
		e.SetEscapeHTML(false)
		e.Encode(v.text)
		x := bytes.TrimRight(o.Bytes(), "\n")
		x = bytes.ReplaceAll(x, []byte(`\u2028`), []byte("\u2028"))
		x = bytes.ReplaceAll(x, []byte(`\u2029`), []byte("\u2029"))
		b.Write(x)
	case arrays:
		b.WriteByte('[')
		for i, x := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, x)
		}
		b.WriteByte(']')
	case objects:
		b.WriteByte('{')
		for i, x := range v.members {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, &value{kind: strs, text: x.name})
			b.WriteString(": ")
			write(b, x.value)
		}
		b.WriteByte('}')
	}
}
