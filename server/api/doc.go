// Package api is what the APIs that the server speaks and the server itself have between
// them: a request that has been let in, what it asks for, and how the answer is written.
package api
