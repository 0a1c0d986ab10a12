package kernels

// Acts is a batch of activation rows x[n][k], in the forms that products read,
// and the products of it that are under way. Acts are reused from step to step and
// are not safe for concurrent use.
type Acts struct {
	Rows
	ternary ternaryTask
	bands   bandTask
}
