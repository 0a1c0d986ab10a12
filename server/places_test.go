package server

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
)

func TestReadinessTellsOfWorkBesideTheEnginesThatDoesNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(DefaultOptions())
		if err := s.Publish(registry.Served{Model: toyModel(t, &toy.Model{}, "toy", nil)}); err != nil {
			t.Fatal(err)
		}
		probe := func(want int) {
			t.Helper()
			for _, path := range []string{"/readyz", "/health"} {
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
				if w.Code != want {
					t.Errorf("%s = %d %s, want %d", path, w.Code, w.Body, want)
				} else if want != http.StatusOK {
					if got := strict[notReady](t, w.Body.Bytes()); *got.Error.Code != "work_stuck" || w.Header().Get("Retry-After") == "" {
						t.Errorf("%s = %s, want work_stuck and Retry-After", path, w.Body)
					}
				}
			}
		}
		var leave []func()
		for range max(1, runtime.GOMAXPROCS(0)/4) {
			_, l, err := cpulimit.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		entered := make(chan struct{})
		go func() {
			defer close(entered)
			_, l, err := cpulimit.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			l()
		}()
		synctest.Wait()
		for range 2 {
			probe(http.StatusOK)
			time.Sleep(10 * time.Second)
		}
		probe(http.StatusOK)
		time.Sleep(10 * time.Second)
		probe(http.StatusServiceUnavailable)
		for _, l := range leave {
			l()
		}
		<-entered
		probe(http.StatusOK)
	})
}
