package kernels

//go:generate go -C _gen run . -family ternary_lut -pkg kernels -out ../asm_ternary_lut_amd64.s -stubs ../asm_ternary_lut_amd64.go
//go:generate go -C _gen run . -family ternary_mad -pkg kernels -out ../asm_ternary_mad_amd64.s -stubs ../asm_ternary_mad_amd64.go
//go:generate go -C _gen run . -family ternary_dot -pkg kernels -out ../asm_ternary_dot_amd64.s -stubs ../asm_ternary_dot_amd64.go
//go:generate go -C _gen run . -family ternary_vnni -pkg kernels -out ../asm_ternary_vnni_amd64.s -stubs ../asm_ternary_vnni_amd64.go
//go:generate go -C _gen run . -family ternary_hybrid -pkg kernels -out ../asm_ternary_hybrid_amd64.s -stubs ../asm_ternary_hybrid_amd64.go
//go:generate go -C _gen run . -family peak -pkg kernels -out ../asm_peak_amd64.s -stubs ../asm_peak_amd64.go
//go:generate go -C _gen run . -header neon_arm64.h -to ..
//go:generate go -C _gen run . -header vex_amd64.h -to ..
