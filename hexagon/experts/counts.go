package experts

// Counts holds the work that prefills gave a device and the host: a model of time and
// energy multiplies it by costs. A row is a token's vector at one of its experts, unless
// it is said otherwise.
type Counts struct {
	Chunks   int64 `json:"chunks"`    // of prompts, one a step or several
	Tokens   int64 `json:"tokens"`    // of prompts: rows of chunks, all experts of a layer together
	Launches int64 `json:"launches"`  // of expert graphs: one each group and chunk, two where the host is between gate and up, and down
	Synced   int64 `json:"synced"`    // other runs of the device, for which the host waits too: attention, dense matrices
	Routed   int64 `json:"routed"`    // rows of chunks, by all experts; the next three are parts of them
	Computed int64 `json:"computed"`  // on the device
	Overflow int64 `json:"overflow"`  // on the host, beyond a capacity
	Cold     int64 `json:"cold"`      // by the CPU, where the plan places their experts
	Padded   int64 `json:"padded"`    // rows of capacities that nothing filled, which the device computed all the same
	Decoded  int64 `json:"decoded"`   // rows of no chunk
	BytesIn  int64 `json:"bytes_in"`  // of rows, to expert graphs
	BytesOut int64 `json:"bytes_out"` // of results, from them
}

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Chunks, c.Tokens, c.Launches, c.Synced = c.Chunks+d.Chunks, c.Tokens+d.Tokens, c.Launches+d.Launches, c.Synced+d.Synced
	c.Routed, c.Computed, c.Overflow = c.Routed+d.Routed, c.Computed+d.Computed, c.Overflow+d.Overflow
	c.Cold, c.Padded, c.Decoded = c.Cold+d.Cold, c.Padded+d.Padded, c.Decoded+d.Decoded
	c.BytesIn, c.BytesOut = c.BytesIn+d.BytesIn, c.BytesOut+d.BytesOut
}
