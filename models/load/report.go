package load

import "fmt"

// Report collects the first failure of a loading, and warnings.
type Report struct {
	err      error
	warnings []string
}

// Fail makes this the failure, if it is the first.
func (r *Report) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// Err returns the first failure.
func (r *Report) Err() error { return r.err }

// Warn notes what is odd in the file.
func (r *Report) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Warnings returns what Warn has noted.
func (r *Report) Warnings() []string { return r.warnings }
