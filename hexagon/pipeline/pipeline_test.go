package pipeline

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryTileGoesThroughAllStagesInOrderAndNoBufferIsOverwritten(t *testing.T) {
	for n := range 9 {
		for _, unpack := range []bool{true, false} {
			var packed, unpacked, out [Buffers]int // the tile a buffer holds, plus one
			next := [stages]int{}
			err := Order(n, unpack, func(j Job) error {
				if j.Tile != next[j.Stage] {
					return fmt.Errorf("%v of tile %d, want tile %d", j.Stage, j.Tile, next[j.Stage])
				}
				next[j.Stage]++
				takes := func(buffers *[Buffers]int, holds, then int) error {
					if buffers[j.Buffer] != holds {
						return fmt.Errorf("%v of tile %d finds a buffer with %d", j.Stage, j.Tile, buffers[j.Buffer]-1)
					}
					buffers[j.Buffer] = then
					return nil
				}
				switch now := j.Tile + 1; {
				case j.Stage == Load:
					return takes(&packed, 0, now)
				case j.Stage == Unpack:
					return errors.Join(takes(&packed, now, 0), takes(&unpacked, 0, now))
				case j.Stage == Store:
					return takes(&out, now, 0)
				case unpack:
					return errors.Join(takes(&unpacked, now, 0), takes(&out, 0, now))
				default:
					return errors.Join(takes(&packed, now, 0), takes(&out, 0, now))
				}
			})
			want := [stages]int{n, n, n, n}
			if !unpack {
				want[Unpack] = 0
			}
			if err != nil || next != want {
				t.Errorf("%d tiles: %v, stages done %v", n, err, next)
			}
		}
	}
}

func TestAnErrorEndsTheOrder(t *testing.T) {
	want, jobs := errors.New("stop"), 0
	err := Order(5, true, func(Job) error {
		if jobs++; jobs == 3 {
			return want
		}
		return nil
	})
	if err != want || jobs != 3 {
		t.Errorf("%v after %d jobs, want the error after 3", err, jobs)
	}
}
