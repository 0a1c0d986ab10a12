package cli

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAServerThatHasStoppedWaitsForItsModelsForAMomentAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := errors.New("a fault")
		for _, c := range []struct {
			closes time.Duration // after the server has stopped
			want   time.Duration
			closed bool
		}{{0, 0, true}, {closingTime / 2, closingTime / 2, true}, {time.Hour, closingTime, false}} {
			served := make(chan struct{})
			go func() {
				time.Sleep(time.Minute) // as long as it serves
				close(served)
			}()
			began := time.Now()
			err, closed := closing(func() error {
				<-served
				time.Sleep(c.closes)
				return fault
			}, served)
			if took := time.Since(began) - time.Minute; took != c.want || closed != c.closed || (err == fault) != c.closed {
				t.Errorf("models that take %v to be closed: %v, %v after %v, want %v after %v", c.closes, err, closed, took, c.closed, c.want)
			}
			time.Sleep(2 * time.Hour)
		}
	})
}
