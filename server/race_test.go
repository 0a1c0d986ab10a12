//go:build race

package server

// raceDetector tells that the race detector is at work, which allocates too.
const raceDetector = true
