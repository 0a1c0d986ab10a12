// Package dsp is the device's side: kernels in C for HVX, the vector unit of Hexagon,
// and what checks and runs packets there. The same sources make the program that
// qemu-hexagon emulates, built here and embedded, and the library for a phone's DSP,
// which nobody has run yet.
package dsp

import _ "embed"

// Emulator is the program that qemu-hexagon runs. `make` in this folder builds it.
//
//go:embed lutra-emulator.elf
var Emulator []byte

// Ablation is the program that counts the packets of these kernels and of those that papers compare theirs with.
//
//go:embed ablation/lutra-ablation.elf
var Ablation []byte
