//go:build amd64

package kernels

import (
	"encoding/hex"
	"testing"
)

// LLVM 19's llvm-mc for the same instructions, with a displacement of 0x12345678. General registers are numbered as
// x86 does: %rax, %rcx, %rdx, %rbx, %rsp, %rbp, %rsi, %rdi.
var amxLLVM = [][2]string{
	{"LDTILECFG(4, 0x12345678)", "c4e27849842478563412"},
	{"LDTILECFG(12, 0x12345678)", "c4c27849842478563412"},
	{"TILERELEASE()", "c4e27849c0"},
	{"TILEZERO(0)", "c4e27b49c0"},
	{"TILEZERO(7)", "c4e27b49f8"},
	{"TILELOADD(0, 0, 1, 0x12345678)", "c4e27b4b840878563412"},
	{"TILELOADD(5, 12, 13, 0x12345678)", "c4827b4bac2c78563412"},
	{"TILELOADD(7, 15, 5, 0x12345678)", "c4c27b4bbc2f78563412"},
	{"TILELOADD(2, 3, 9, 0x12345678)", "c4a27b4b940b78563412"},
	{"TILELOADDT1(3, 6, 15, 0x12345678)", "c4a2794b9c3e78563412"},
	{"TILELOADDT1(6, 13, 7, 0x12345678)", "c4c2794bb43d78563412"},
	{"TILESTORED(1, 2, 8, 0x12345678)", "c4a27a4b8c0278563412"},
	{"TILESTORED(6, 9, 3, 0x12345678)", "c4c27a4bb41978563412"},
	{"TDPBSSD(1, 2, 3)", "c4e2735eda"},
	{"TDPBSSD(7, 0, 4)", "c4e2435ee0"},
	{"TDPBSUD(6, 5, 0)", "c4e24a5ec5"},
	{"TDPBUSD(5, 6, 7)", "c4e2515efe"},
	{"TDPBUUD(4, 3, 2)", "c4e2585ed3"},
}

func TestAMXIsEncodedAsLLVMDoes(t *testing.T) {
	var lines []string
	for _, c := range amxLLVM {
		lines = append(lines, c[0])
	}
	for i, code := range assemble(t, "amx_amd64.h", lines) {
		if got := hex.EncodeToString(code); got != amxLLVM[i][1] {
			t.Errorf("%s is %s, want %s", amxLLVM[i][0], got, amxLLVM[i][1])
		}
	}
}
