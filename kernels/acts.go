package kernels

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Acts is a batch of activation rows x[n][k], in the forms that products read,
// and the products of it that are under way. Acts are reused from step to step and
// are not safe for concurrent use.
type Acts struct {
	acts.Rows
	ternary ternary.Task
	bands   bands.Task
}
