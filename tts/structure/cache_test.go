package structure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/gbnf"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// ask asks a cache for the format of a schema.
func ask(ctx context.Context, c *Cache, text string) (*Format, error) {
	return c.Format(ctx, Key{Sum: [32]byte([]byte(fmt.Sprintf("%-32.32s", text)))}, func(_ context.Context, b *budget.Budget) (*Format, error) {
		g, err := schema.Compile([]byte(text), schema.Options{Budget: b})
		if err != nil {
			return nil, err
		}
		s := spelling{"ab", "12"}
		return New(g, grammar.NewVocabulary(256+len(s), s.Text), s), nil
	})
}

func TestAFormatIsCompiledOnceAndFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(DefaultCacheOptions())
		ctx, cancel := context.WithCancel(t.Context())
		first, err := ask(ctx, c, fewLetters)
		if err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Used != 1 || st.Formats != 1 || st.Bytes == 0 || st.Hits != 0 || st.Misses != 1 {
			t.Errorf("in use: %+v", st)
		}
		cancel()
		synctest.Wait()
		if st := c.Stats(); st.Used != 0 || st.Formats != 1 || st.Bytes == 0 {
			t.Errorf("out of use: %+v", st)
		}
		again, err := ask(t.Context(), c, fewLetters)
		if st := c.Stats(); err != nil || again != first || st.Hits != 1 || st.Used != 1 {
			t.Errorf("asked for again: %p, want %p, %v, %+v", again, first, err, st)
		}
	})
}

func TestThoseWhoAskAtOnceWaitForOneCompilation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(DefaultCacheOptions())
		begun, goOn := 0, make(chan struct{})
		want := newFormat(t, fewLetters)
		compile := func(ctx context.Context, b *budget.Budget) (*Format, error) {
			begun++
			select {
			case <-goOn:
				return want, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		type answer struct {
			f   *Format
			err error
		}
		answers := make(chan answer, 5)
		var leave []context.CancelFunc
		for range cap(answers) {
			ctx, cancel := context.WithCancel(t.Context())
			leave = append(leave, cancel)
			go func() {
				f, err := c.Format(ctx, Key{}, compile)
				answers <- answer{f, err}
			}()
			synctest.Wait()
		}
		leave[0]() // whose goroutine compiles, for the others
		leave[3]()
		synctest.Wait()
		close(goOn)
		gone := 0
		for range cap(answers) {
			switch a := <-answers; {
			case errors.Is(a.err, context.Canceled):
				gone++
			case a.f != want || a.err != nil:
				t.Errorf("%p, %v, want %p", a.f, a.err, want)
			}
		}
		if st := c.Stats(); begun != 1 || gone != 2 || st.Hits != 4 || st.Misses != 1 || st.Used != 1 {
			t.Errorf("compiled %d times, %d had gone, %+v", begun, gone, st)
		}
		for _, leave := range leave {
			leave()
		}
	})
}

func TestACompilationEndsWhenAllHaveGoneThatWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(DefaultCacheOptions())
		ended := 0
		compile := func(ctx context.Context, b *budget.Budget) (*Format, error) {
			_ = b.Hold(1 << 20)
			<-ctx.Done()
			ended++
			return nil, b.Work(1 << 20)
		}
		var leave []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			leave = append(leave, cancel)
			go func() {
				if _, err := c.Format(ctx, Key{}, compile); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want that the client has gone", err)
				}
			}()
			synctest.Wait()
		}
		for i, leave := range leave {
			if ended != 0 {
				t.Errorf("it has ended when %d of %d had gone", i, 3)
			}
			leave()
			synctest.Wait()
		}
		if st := c.Stats(); ended != 1 || st.Bytes != 0 || st.Formats != 0 || st.Used != 0 {
			t.Errorf("ended %d times, %+v", ended, st)
		}
		if f, err := ask(t.Context(), c, fewLetters); err != nil || f == nil {
			t.Errorf("asked for afterwards: %v", err)
		}
	})
}

// digits returns a schema whose masks take a lot of memory: JSON numbers that are a multiple of
// another, of which each digit is a state.
func digits(i int) string {
	return fmt.Sprintf(`{"type": "number", "multipleOf": 1.23%06d}`, 450679+2*i)
}

func TestManyLargeFormatsTakeBoundedMemory(t *testing.T) {
	sweep.NoRace(t)
	options := CacheOptions{Memory: 32 << 20, Largest: 8 << 20}
	c := NewCache(options)
	before := heap()
	made, refused := 0, 0
	for i := range 32 {
		ctx, cancel := context.WithCancel(context.Background())
		f, err := ask(ctx, c, digits(i))
		var bound *budget.Error
		if err == nil {
			made++
			p := f.Start()
			for _, b := range []byte("98765.4321") {
				if _, err = p.Mask(nil); err != nil {
					break
				}
				next, _ := p.Next(int32(b))
				if next == nil {
					break
				}
				p = next
			}
		} else {
			refused++
		}
		if err != nil && !errors.As(err, &bound) {
			t.Errorf("%s: %v", digits(i), err)
		}
		cancel()
		for c.Stats().Used > 0 { // as soon as the context's function has run
			runtime.Gosched()
		}
		if st := c.Stats(); st.Bytes > options.Memory {
			t.Fatalf("%d bytes of formats", st.Bytes)
		}
	}
	grown, st := heap()-before, c.Stats()
	t.Logf("%d made, %d refused, %d KiB counted, the heap has grown by %d KiB: %+v", made, refused, st.Bytes>>10, grown>>10, st)
	if grown > 2*options.Memory {
		t.Errorf("the heap has grown by %d bytes, of %d that formats may have", grown, options.Memory)
	}
	runtime.KeepAlive(c)
}

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestWhatAFormatIsSaidToTakeIsWhatTheHeapGrowsBy(t *testing.T) {
	sweep.NoRace(t)
	vocabulary := grammar.NewVocabulary(256+len(spelling{}), spelling{}.Text)
	for name, make := range map[string]func(b *budget.Budget) (*grammar.Grammar, error){
		"many words": func(b *budget.Budget) (*grammar.Grammar, error) {
			var text strings.Builder
			for i := range 20000 {
				fmt.Fprintf(&text, `"w%d" | `, i)
			}
			return gbnf.Compile("root ::= "+text.String()+`"x"`, b)
		},
		"many rules": func(b *budget.Budget) (*grammar.Grammar, error) {
			return gbnf.Compile("root ::= "+strings.Repeat("x ", 20000)+"\".\"\nx ::= \"a\" | \"\"", b)
		},
		"multiples": func(b *budget.Budget) (*grammar.Grammar, error) {
			return schema.Compile([]byte(digits(0)), schema.Options{Budget: b})
		},
		"many properties": func(b *budget.Budget) (*grammar.Grammar, error) {
			var text strings.Builder
			for i := range 2000 {
				fmt.Fprintf(&text, `"p%d": {"type": "number"}, `, i)
			}
			return schema.Compile([]byte(`{"type": "object", "properties": {`+text.String()+`"z": {}}}`), schema.Options{Budget: b})
		},
	} {
		before := heap()
		b := budget.New(context.Background(), budget.Steps, 1<<30, nil)
		g, err := make(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f := New(g, vocabulary, spelling{})
		p := f.Start()
		for range 500 {
			mask, err := p.Mask(nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			for id := range int32(256) {
				if mask.Has(id) {
					if next, _ := p.Next(id); next != nil {
						p = next
					}
					break
				}
			}
		}
		grown := heap() - before
		t.Logf("%s: %d KiB, counted %d KiB", name, grown>>10, b.Held()>>10)
		if held := b.Held(); grown > held*3/2 || grown < held/3 {
			t.Errorf("%s: the heap has grown by %d bytes, %d are counted", name, grown, held)
		}
		runtime.KeepAlive(f)
	}
}

func TestFormatsInUseAreKeptAndFurtherOnesWait(t *testing.T) {
	c := NewCache(CacheOptions{Memory: 4 << 20, Largest: 3 << 20})
	ctx, cancel := context.WithCancel(context.Background())
	hold := func(id byte, bytes int) error {
		_, err := c.Format(ctx, Key{Sum: [32]byte{id}}, func(_ context.Context, b *budget.Budget) (*Format, error) {
			if err := b.Hold(bytes); err != nil {
				return nil, err
			}
			return newFormat(t, fewLetters), nil
		})
		return err
	}
	for i := range byte(2) {
		if err := hold(i, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := hold(2, 3<<19); !errors.Is(err, ErrBusy) {
		t.Errorf("more than three quarters: %v, want ErrBusy", err)
	}
	var bound *budget.Error
	if err := hold(3, 5<<20); !errors.As(err, &bound) || !strings.Contains(err.Error(), "more than 3 MiB") {
		t.Errorf("more than the largest may have: %v", err)
	}
	if st := c.Stats(); st.Bytes != 2<<20 || st.Used != 2 || st.Refused != 2 || st.Evictions != 0 {
		t.Errorf("%+v", st)
	}
	cancel()
	for c.Stats().Used > 0 {
		runtime.Gosched()
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	if err := hold(2, 3<<19); err != nil {
		t.Errorf("when the others have gone: %v", err)
	}
	if st := c.Stats(); st.Evictions != 1 || st.Bytes != 1<<20+3<<19 {
		t.Errorf("%+v", st)
	}
}
