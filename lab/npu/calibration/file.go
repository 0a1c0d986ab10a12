package calibration

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// Read reads and checks a calibration. Errors wrap experts.ErrFile.
func Read(r io.Reader) (*Calibration, error) {
	c := new(Calibration)
	if err := experts.Read(r, c, c.Check); err != nil {
		return nil, fmt.Errorf("%w: calibration: %w", experts.ErrFile, err)
	}
	return c, nil
}

// Open reads the calibration in the file at path.
func Open(path string) (*Calibration, error) { return experts.Open(path, Read) }
