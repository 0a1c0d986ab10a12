package offload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/kv"
)

// writerVariable has the test's program write into the folder that it names until it is killed.
const writerVariable = "LUTRA_TEST_OFFLOAD_WRITER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(writerVariable); folder != "" {
		writeForever(folder)
	}
	os.Exit(m.Run())
}

// rig is a store over a cache of its own.
type rig struct {
	*Store
	cache *kv.Cache
	log   *bytes.Buffer
}

const testBlock = 8

// newRig opens a folder; change may change it before the store is made.
func newRig(t testing.TB, folder string, states int, change func(*Folder)) *rig {
	shape := kv.Shape{Layers: 2, Heads: 2, HeadDim: 32}
	if states > 0 {
		shape.State = 50
	}
	cache, err := kv.New(shape, kv.Options{Type: kv.TypeOf(kv.Int8, kv.Int4), BlockLen: testBlock, Blocks: 400, States: states})
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSettings()
	s.Path = folder
	r := &rig{cache: cache, log: new(bytes.Buffer)}
	f := NewFolder(s, zerolog.New(r.log))
	if change != nil {
		change(f)
	}
	r.Store = New(f, cache, Sources{About: About{Model: "test"}, Digest: func(context.Context) (string, error) { return "digest", nil }})
	return r
}

// tokensOf are n tokens of one of several prompts, which agree in their first 100.
func tokensOf(prompt, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		if list[i] = int32(i); i >= 100 {
			list[i] = int32(i * (prompt + 2))
		}
	}
	return list
}

// contents are the bytes that a block holds which ends these tokens, or a state after them.
func contents(tokens []int32, n int) []byte {
	var h Hash
	for i := 0; i+testBlock <= len(tokens); i += testBlock {
		h = h.next(tokens[i : i+testBlock])
	}
	return bytes.Repeat(h[:], n/len(h)+1)[:n]
}

// compute opens a sequence of tokens, with what the cache has of them, and computes the rest.
func (r *rig) compute(t testing.TB, tokens []int32) *kv.Sequence {
	s := r.cache.Open(tokens)
	for n := s.Len(); n < len(tokens); { // in pieces, as prompts are: each leaves a checkpoint
		to := min(len(tokens), n+40)
		if err := s.Grow(to - n); err != nil {
			t.Fatal(err)
		}
		_, marks := s.Advance(to, math.MaxInt)
		for i := n / testBlock; (i+1)*testBlock <= to; i++ {
			r.cache.Import(s.Blocks()[i], contents(tokens[:(i+1)*testBlock], r.cache.BlockBytes()))
		}
		if r.cache.StateBytes() > 0 {
			copy(s.State(), contents(tokens[:to], r.cache.StateBytes()))
			for _, m := range marks {
				copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.State))), 4*len(m.State)), contents(tokens[:m.At], 4*len(m.State)))
			}
		}
		s.Seal(tokens[:to])
		n = to
	}
	return s
}

// save computes a prompt and saves it, as an engine does that is done with it.
func (r *rig) save(t testing.TB, tokens []int32) {
	s := r.compute(t, tokens)
	var c Chain
	r.Save(&c, s, nil, tokens, true)
	s.Release()
}

// restore reads what there is of tokens, checks every byte of it, and returns how many that were.
func (r *rig) restore(t testing.TB, tokens []int32) int {
	t.Helper()
	news := make(chan struct{}, 2)
	l := r.Find(nil, tokens, 0, func() { news <- struct{}{} })
	<-news
	n, done := l.Result()
	if !done {
		t.Fatal("the search is not done")
	}
	if n == 0 {
		return 0
	}
	s := r.cache.Open(nil)
	defer s.Release()
	if err := s.Grow(n); err != nil {
		t.Fatal(err)
	}
	l.Load(s, 0)
	<-news
	got, _ := l.Result()
	for i := range got / testBlock {
		b := make([]byte, r.cache.BlockBytes())
		r.cache.Export(b, s.Blocks()[i])
		if !bytes.Equal(b, contents(tokens[:(i+1)*testBlock], len(b))) {
			t.Errorf("block %d of %d is not what was computed", i, got/testBlock)
		}
	}
	if got > 0 && s.State() != nil && !bytes.Equal(s.State(), contents(tokens[:got], len(s.State()))) {
		t.Errorf("the state after %d tokens is not what was computed", got)
	}
	return got
}

func TestWhatIsSavedIsRestored(t *testing.T) {
	for _, states := range []int{0, 8} {
		folder := t.TempDir()
		r := newRig(t, folder, states, nil)
		for prompt := range 3 {
			r.save(t, tokensOf(prompt, 700+prompt))
		}
		r.Close()
		if st := r.Stats(); st.Written == 0 || st.Dropped+st.Failures+st.Damaged > 0 || r.log.Len() > 0 {
			t.Errorf("%+v %s", st, r.log)
		}
		r = newRig(t, folder, states, nil)
		for prompt := range 3 {
			if got, want := r.restore(t, tokensOf(prompt, 700+prompt)), 696; got < want-40 || got > 700+prompt {
				t.Errorf("%d states: %d tokens restored, want %d", states, got, want)
			}
			if states == 0 {
				if got := r.restore(t, tokensOf(prompt, 600)); got != 512 { // whole chunks alone: the end had another one
					t.Errorf("%d tokens of a shorter prompt restored, want 512", got)
				}
			}
		}
		if got := r.restore(t, tokensOf(9, 600)); got > 100 {
			t.Errorf("%d tokens restored of a prompt that nobody has computed", got)
		}
		r.Close()
	}
}

func TestAnotherModelFindsNothing(t *testing.T) {
	folder := t.TempDir()
	r := newRig(t, folder, 0, nil)
	r.save(t, tokensOf(0, 300))
	r.Close()
	of := func(change func(*Sources)) int {
		r := newRig(t, folder, 0, nil)
		r.Close()
		s := r.id.sources
		s.Digest = func(context.Context) (string, error) { return "digest", nil }
		change(&s)
		r.Store = New(r.folder, r.cache, s)
		defer r.Close()
		return r.restore(t, tokensOf(0, 300))
	}
	if got := of(func(*Sources) {}); got != 296 {
		t.Errorf("the same model found %d tokens, want 296", got)
	}
	for name, change := range map[string]func(*Sources){
		"another file":     func(s *Sources) { s.Digest = func(context.Context) (string, error) { return "other", nil } },
		"other options":    func(s *Sources) { s.Options = "other" },
		"other kernels":    func(s *Sources) { s.Kernels = "arm64-neon" },
		"no file any more": func(s *Sources) { s.Digest = func(context.Context) (string, error) { return "", errors.New("gone") } },
	} {
		if got := of(change); got != 0 {
			t.Errorf("%s: %d tokens found, want 0", name, got)
		}
	}
}

func TestFilesGoByAgeAndBySize(t *testing.T) {
	folder := t.TempDir()
	for prompt := range 8 {
		r := newRig(t, folder, 0, nil)
		r.save(t, tokensOf(prompt, 512))
		r.Close()
		used := time.Now().Add(time.Duration(prompt-9) * time.Hour)
		for it, p := range r.known.items {
			if err := os.Chtimes(r.path(p.name), used, used); err != nil || it.kind != blocksKind {
				t.Fatal(it, err)
			}
		}
	}
	sized := newRig(t, folder, 0, nil)
	each := fileBytes(sized.chunk, sized.cache.BlockBytes())
	sized.Close()
	sized = newRig(t, folder, 0, func(f *Folder) { f.size = 10 * each })
	sized.save(t, tokensOf(8, 512))
	sized.Close()
	if st := sized.folder.Stats(); st.Bytes != 9*each || st.Files != 9 || st.Evicted != 9 {
		t.Errorf("%+v, want 9 files of %d bytes", st, each)
	}
	r := newRig(t, folder, 0, nil)
	for prompt, want := range []int{0, 0, 0, 0, 256, 512, 512, 512, 512} { // the oldest first, of a prompt the end
		if got := r.restore(t, tokensOf(prompt, 512)); got != want {
			t.Errorf("prompt %d: %d tokens after eviction by size, want %d", prompt, got, want)
		}
	}
	r.Close()
	r = newRig(t, folder, 0, func(f *Folder) { f.now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) } })
	r.Close()
	if files, _ := filepath.Glob(filepath.Join(folder, "*", "*")); len(files) > 1 { // what says which model it was is younger
		t.Errorf("files are left after a week: %v", files)
	}
}

func TestAFullDiskIsSaidOnceAndStopsNothing(t *testing.T) {
	folder := t.TempDir()
	var now, room atomic.Int64
	room.Store(30_000)
	r := newRig(t, folder, 0, func(f *Folder) {
		f.now = func() time.Time { return time.Unix(now.Load(), 0) }
		f.write = func(path string, data []byte) error {
			if room.Add(-int64(len(data))) < 0 {
				_ = os.WriteFile(filepath.Join(filepath.Dir(path), partial+"torn"), data[:len(data)/2], 0o600)
				return syscall.ENOSPC
			}
			return writeFile(path, data)
		}
	})
	now.Store(time.Now().Unix())
	settled := func() {
		for r.queued.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for prompt := range 6 {
		r.save(t, tokensOf(prompt, 512))
		settled()
	}
	if n := strings.Count(r.log.String(), "cannot be written"); n != 1 {
		t.Errorf("a full disk is said %d times: %s", n, r.log)
	}
	if st := r.Stats(); st.Failures != 1 || st.Dropped < 2 {
		t.Errorf("%+v, want one failure, and files that were dropped", st)
	}
	now.Add(61)
	room.Store(1 << 30)
	r.save(t, tokensOf(20, 512))
	r.Close()
	r = newRig(t, folder, 0, nil)
	defer r.Close()
	if got := r.restore(t, tokensOf(20, 512)); got != 512 {
		t.Errorf("%d tokens after there was room again, want 512", got)
	}
}

// A store whose writer cannot begin takes as much as its queue has room for, and the rest later.
func TestAFullQueueDropsAndNeverWaits(t *testing.T) {
	r := newRig(t, t.TempDir(), 0, nil)
	r.Close()
	begin := make(chan struct{})
	r.Store = New(r.folder, r.cache, Sources{Digest: func(context.Context) (string, error) {
		<-begin
		return "digest", nil
	}})
	tokens := tokensOf(0, 3000)
	s := r.compute(t, tokens)
	var c Chain
	r.queued.Store(MostQueued) // of other sequences
	r.Save(&c, s, nil, tokens, false)
	if c.saved != 0 || r.Stats().Dropped != 0 {
		t.Errorf("%d blocks went into a full queue, %+v", c.saved, r.Stats())
	}
	var resting Chain
	r.Save(&resting, s, nil, tokens, true)
	if r.Stats().Dropped != 1 {
		t.Errorf("%+v, want one dropped", r.Stats())
	}
	r.queued.Store(0)
	r.Save(&c, s, nil, tokens, true)
	close(begin)
	s.Release()
	folder := r.folder.path
	r.Close()
	again := newRig(t, folder, 0, nil)
	again.Close()
	again.Store = New(again.folder, again.cache, Sources{Digest: func(context.Context) (string, error) { return "digest", nil }})
	defer again.Close()
	if got := again.restore(t, tokens); got != 3000 {
		t.Errorf("%d tokens were saved later, want 3000", got)
	}
}

// writeForever writes prompts until somebody kills the process.
func writeForever(folder string) {
	t := new(testing.B)
	for round := 0; ; round++ {
		r := newRig(t, folder, 8, nil)
		for prompt := range 20 {
			r.save(t, tokensOf(prompt, 300+17*prompt))
		}
		r.Close()
		if _, _, err := r.folder.Remove(nil, time.Time{}); err != nil {
			fmt.Println(err)
		}
	}
}

func TestAWriterMayBeKilledAtAnyPointWhileOthersRead(t *testing.T) {
	folder, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	restored := 0
	for range sweep.Cases(10, 40) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+folder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(time.Duration(20+rng.IntN(60)) * time.Millisecond)
		r := newRig(t, folder, 8, nil)
		for time.Now().Before(until) {
			prompt := rng.IntN(20)
			restored += r.restore(t, tokensOf(prompt, 300+17*prompt))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for prompt := range 20 {
			restored += r.restore(t, tokensOf(prompt, 300+17*prompt))
		}
		r.Close()
		if st := r.Stats(); st.Damaged > 0 {
			t.Errorf("%+v: a file was there before it was whole", st)
		}
	}
	if restored == 0 {
		t.Error("nothing was restored")
	}
}

func FuzzAFileIsWhatItWasOrDamaged(f *testing.F) {
	p := prefix{Hash{1}, Hash{2}, 3}
	image := make([]byte, fileBytes(3, 40))
	for i := range image {
		image[i] = byte(i)
	}
	finish(image, &p, 3, 40)
	f.Add(image)
	f.Add(image[:len(image)-1])
	for i := range image {
		flipped := slices.Clone(image)
		flipped[i] ^= 4
		f.Add(flipped)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := open(path, &p, 3, 40)
		if err != nil {
			return
		}
		defer r.close()
		dst := make([]byte, 40)
		for i := range 3 {
			if r.read(dst, i) == nil && !bytes.Equal(dst, image[headBytes(3)+i*40:][:40]) {
				t.Errorf("piece %d is %v", i, dst)
			}
		}
	})
}
