package pipeline

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryTileGoesThroughAllStagesInOrderAndNoBufferIsOverwritten(t *testing.T) {
	for n := range 9 {
		var packed, unpacked [Buffers]int // the tile a buffer holds, plus one
		next := [stages]int{}
		err := Order(n, func(j Job) error {
			if j.Tile != next[j.Stage] {
				return fmt.Errorf("%v of tile %d, want tile %d", j.Stage, j.Tile, next[j.Stage])
			}
			next[j.Stage]++
			holds := func(buffers *[Buffers]int, want int) error {
				if buffers[j.Buffer] != want {
					return fmt.Errorf("%v of tile %d finds a buffer with %d", j.Stage, j.Tile, buffers[j.Buffer]-1)
				}
				return nil
			}
			switch j.Stage {
			case Load:
				defer func() { packed[j.Buffer] = j.Tile + 1 }()
				return holds(&packed, 0)
			case Unpack:
				defer func() { packed[j.Buffer], unpacked[j.Buffer] = 0, j.Tile+1 }()
				return errors.Join(holds(&packed, j.Tile+1), holds(&unpacked, 0))
			default:
				defer func() { unpacked[j.Buffer] = 0 }()
				return holds(&unpacked, j.Tile+1)
			}
		})
		if err != nil || next != [stages]int{n, n, n} {
			t.Errorf("%d tiles: %v, stages done %v", n, err, next)
		}
	}
}

func TestAnErrorEndsTheOrder(t *testing.T) {
	want, jobs := errors.New("stop"), 0
	err := Order(5, func(Job) error {
		if jobs++; jobs == 3 {
			return want
		}
		return nil
	})
	if err != want || jobs != 3 {
		t.Errorf("%v after %d jobs, want the error after 3", err, jobs)
	}
}
