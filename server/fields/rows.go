package fields

import "fmt"

// Row is a field of requests, or a few that belong together: a line of the tables in docs/api.md,
// and the function that reads it.
type Row struct {
	Names string // as Markdown
	Range string // of values, in words
	Doc   string
	read  func(*sampled)
}

// count says in words how many there may be of something.
func count(most int, of string) string { return fmt.Sprintf("at most %d %s", most, of) }
