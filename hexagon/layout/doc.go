// Package layout places numbers in the memory of a Hexagon NPU: fp16, tiles
// of the tile unit (HMX), and weights of a few bits as HVX looks them up. The
// definitions of all of them stand with the packets, in hexagon/device.
package layout
