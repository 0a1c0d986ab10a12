package gguf

// fileType holds what a number of general.file_type says of a file: its name, and
// the storage types of most weights where the number has stood for several.
type fileType struct {
	name  string
	types []Type
}

// fileTypes are llama_ftype of llama.h, its namesakes in PrismML's llama.cpp
// (141, 143) and in bitnet.cpp (40, for I2_S).
var fileTypes = map[uint64]fileType{
	0: {name: "F32"}, 1: {name: "F16"}, 2: {name: "Q4_0"}, 3: {name: "Q4_1"}, 7: {name: "Q8_0"}, 8: {name: "Q5_0"}, 9: {name: "Q5_1"},
	10: {name: "Q2_K"}, 11: {name: "Q3_K_S"}, 12: {name: "Q3_K_M"}, 13: {name: "Q3_K_L"}, 14: {name: "Q4_K_S"}, 15: {name: "Q4_K_M"},
	16: {name: "Q5_K_S"}, 17: {name: "Q5_K_M"}, 18: {name: "Q6_K"}, 19: {name: "IQ2_XXS"}, 20: {name: "IQ2_XS"}, 21: {name: "Q2_K_S"},
	22: {name: "IQ3_XS"}, 23: {name: "IQ3_XXS"}, 24: {name: "IQ1_S"}, 25: {name: "IQ4_NL"}, 26: {name: "IQ3_S"}, 27: {name: "IQ3_M"},
	28: {name: "IQ2_S"}, 29: {name: "IQ2_M"}, 30: {name: "IQ4_XS"}, 31: {name: "IQ1_M"}, 32: {name: "BF16"},
	36: {name: "TQ1_0"}, 37: {name: "TQ2_0"}, 38: {name: "MXFP4_MOE"},
	39: {"NVFP4", []Type{NVFP4, Q2_0C}}, 40: {"Q1_0", []Type{Q1_0, Q1_0_G32, Q2_0C, I2_S}}, 41: {"Q2_0", []Type{Q2_0, PQ2_0, Q1_0, STQ1_0_42}}, 42: {"STQ1_0", []Type{STQ1_0}},
	141: {"PQ2_0", []Type{PQ2_0}}, 143: {"PTQ1_0", []Type{PTQ1_0}},
}

func (f *File) fileType() fileType {
	about := f.Metadata
	if f.first != nil {
		about = f.first.Metadata
	}
	n, ok := about.Uint("general.file_type")
	if !ok {
		return fileType{}
	}
	return fileTypes[n]
}

// FileType returns the name of what most weights are stored as according to
// general.file_type, "" if that is missing or unknown. A number that has stood
// for several types has the name of the one that most weights here are of.
func (f *File) FileType() string {
	listed := f.fileType()
	weights := map[Type]int{}
	for i := range f.Tensors {
		weights[f.Tensors[i].Type] += f.Tensors[i].Bytes()
	}
	name, most := listed.name, 0
	for _, t := range listed.types {
		if weights[t] > most {
			name, most = t.String(), weights[t]
		}
	}
	return name
}
