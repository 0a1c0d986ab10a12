package jobs

import "time"

// Files and batches outlive the process: their times are the time of day, and in this file alone.

// seconds returns a time as APIs tell of it.
func seconds(t time.Time) int64 { return t.Unix() }

// now returns the seconds of now.
func now() int64 { return seconds(time.Now()) }

// order returns a time by which lists are sorted, in nanoseconds.
func order(t time.Time) int64 { return t.UnixNano() }

// moment returns the time of seconds.
func moment(at int64) time.Time { return time.Unix(at, 0) }

// stamp writes the time of seconds as Anthropic's API does.
func stamp(at int64) string { return moment(at).UTC().Format(time.RFC3339) }
