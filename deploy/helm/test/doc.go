// Package test renders the chart of ../lutra with Helm's engine. It checks the result against Kubernetes' schemas, Pod
// Security, lutra's own reader of configurations, and a lutra process that runs as the pod says.
//
// It is a module of its own: Helm and Kubernetes are no libraries of the server.
package test
