// Package metrics is what /metrics shows: of requests, searches and engines, with
// meanings and buckets of vLLM's metrics, and a second time under its names.
package metrics
