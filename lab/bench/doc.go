// Package bench measures speed: of kernels, of the engine, of a server, and how
// costs grow. lab/eval measures accuracy.
//
//	Kernels  products beside the machine's peak (products)
//	Engine   prefill and decode through a whole engine, or where their time goes
//	Growth   cost against batch, context and threads
//	Server   latencies of any OpenAI-compatible server under load
//
// Each takes options and returns a Report. Other engines and servers can be measured
// alternately with ours, so machine noise affects all equally.
package bench
