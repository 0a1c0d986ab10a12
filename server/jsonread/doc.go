// Package jsonread reads the JSON of requests: field by field, each with its bounds,
// and with messages that name the field at fault.
//
// A body lies in memory once: values are parts of its text until they are read.
package jsonread
