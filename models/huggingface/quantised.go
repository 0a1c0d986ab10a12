package huggingface

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// quantised has the fields of quantization_config, for weights in fewer bits.
type quantised struct {
	method  string   // "": none
	divides bool     // bitnet: weights are trits by their scale, not times it
	online  bool     // bitnet: weights are stored as floats, and become ternary when they are read
	block   [2]int   // fp8: rows and columns that have a scale; 0: all
	except  []string // modules whose weights are stored as they are
	names            // of the tensors of a matrix
	fp4     bool     // compressed-tensors: codes are numbers of two bits of exponent and one of mantissa
	fromOne bool     // gptq: codes of zero are stored one below what they are
}

// names has the names of the tensors of a matrix, after the name of its module.
type names struct {
	codes  string   // of the one that stands for the weights
	beside []string // of those that are read with it, or that only other devices read
}

// The methods that are read.
const (
	methodBitNet     = "bitnet"
	methodFP8        = "fp8"
	methodModelOpt   = "modelopt"
	methodCompressed = "compressed-tensors"
	methodGPTQ       = "gptq"
	methodAWQ        = "awq"
	methodMXFP4      = "mxfp4"
)

// methods has the methods that are read.
var methods = map[string]names{
	methodBitNet:     {".weight", []string{".weight_scale"}},
	methodFP8:        {".weight", []string{".weight_scale_inv", ".weight_scale"}},
	methodModelOpt:   {".weight", []string{".weight_scale", ".weight_scale_2", ".input_scale", ".k_scale", ".v_scale"}},
	methodCompressed: {".weight_packed", []string{".weight_scale", ".weight_global_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx", ".input_global_scale"}},
	methodGPTQ:       {".qweight", []string{".qzeros", ".scales", ".g_idx"}},
	methodAWQ:        {".qweight", []string{".qzeros", ".scales"}},
	methodMXFP4:      {"_blocks", []string{"_scales"}},
}

// scaleNames end the names of scales, beside the weight whose name they continue.
var scaleNames = []string{"_scale_inv", "_scale"}

// quantisation reads quantization_config, as transformers writes it for BitNet and for blocks of
// FP8 (integrations/bitnet.py and finegrained_fp8.py), and others as the library of their name does.
func (b *builder) quantisation() {
	b.quant.online = b.arch.online
	v, standard := b.config.within("quantization_config"), ""
	if v.m == nil {
		of := b.read(fileModelOpt, false)
		if of.m == nil || b.err != nil {
			return
		}
		if v, standard = of.within("quantization"), methodModelOpt; v.m == nil {
			of.fail("quantization", "is missing")
			return
		}
	}
	q := &b.quant
	q.method, q.except = v.text("quant_method", standard), v.texts("modules_to_not_convert")
	q.names = methods[q.method]
	switch q.method {
	case methodBitNet:
		class, mode := v.text("linear_class", "bitlinear"), v.text("quantization_mode", "offline")
		q.divides, q.online = class == "bitlinear", class == "autobitlinear" && mode == "online"
		if class != "bitlinear" && class != "autobitlinear" {
			v.fail("linear_class", "is %.40q: %w", class, ErrUnsupported)
		}
		if v.flag("use_rms_norm", false) {
			v.fail("use_rms_norm", "is true: %w: matrices with a norm of their own", ErrUnsupported)
		}
	case methodFP8:
		if sizes := v.list("weight_block_size"); len(sizes) > 0 {
			for i := range q.block {
				n, ok := 0, false
				if i < len(sizes) {
					n, ok = whole(sizes[i])
				}
				if q.block[i] = n; !ok || n < 1 || n > maxDim || len(sizes) != 2 {
					v.fail("weight_block_size", "is %s, want two sizes", brief(sizes))
					return
				}
			}
		}
	case methodMXFP4:
	case methodModelOpt:
		v.only("quant_algo", "NVFP4", "W4A16_NVFP4")
	case methodCompressed:
		b.compressed(&v)
	case methodGPTQ:
		v.onlyNumber("bits", 4)
		v.only("checkpoint_format", "gptq", "gptq_v2")
		q.fromOne = v.text("checkpoint_format", methodGPTQ) == methodGPTQ
	case methodAWQ:
		v.onlyNumber("bits", 4)
		v.only("version", "gemm", "GEMM")
	default:
		v.fail("quant_method", "is %.40q: %w: only %s are read", q.method, ErrUnsupported, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	}
}

// compressed reads what compressed-tensors says: groups of modules, all of four bits.
func (p *packer) compressed(v *values) {
	v.only("format", "nvfp4-pack-quantized", "pack-quantized")
	p.quant.fp4 = v.text("format", "") == "nvfp4-pack-quantized"
	sparsity := v.within("sparsity_config")
	sparsity.only("format", "dense")
	groups := v.within("config_groups")
	for _, name := range slices.Sorted(maps.Keys(groups.m)) {
		group := groups.within(name)
		weights := group.within("weights")
		weights.onlyNumber("num_bits", 4)
		weights.only("type", map[bool]string{true: "float", false: "int"}[p.quant.fp4])
	}
}

// isBeside tells whether a tensor is read with another one, or is nothing to a CPU.
func (p *packer) isBeside(name string) bool {
	for _, end := range p.quant.beside {
		if stem, ok := strings.CutSuffix(name, end); ok && (p.weights.Tensor(stem+p.quant.codes) != nil || end == ".k_scale" || end == ".v_scale") {
			return true
		}
	}
	return false
}

// beside finds a tensor beside codes; nil: it is not there.
func (p *packer) beside(codes *safetensors.Tensor, end string) *safetensors.Tensor {
	return p.weights.Tensor(strings.TrimSuffix(codes.Name, p.quant.codes) + end)
}

// isCodes tells whether a tensor holds the codes of four bits of a matrix.
func (p *packer) isCodes(t *safetensors.Tensor) bool {
	switch {
	case !strings.HasSuffix(t.Name, p.quant.codes):
		return false
	case p.quant.method == methodModelOpt, p.quant.method == methodMXFP4, p.quant.method == methodCompressed && p.quant.fp4:
		return t.DType == "U8"
	}
	return t.DType == "I32" && (p.quant.method == methodCompressed || p.quant.method == methodGPTQ || p.quant.method == methodAWQ)
}

// dims returns the shape of what a stored tensor holds, as GGUF has it.
func (p *packer) dims(t *safetensors.Tensor) []int {
	if !p.isCodes(t) {
		return fastestFirst(t.Shape)
	}
	if p.quant.method == methodMXFP4 && len(t.Shape) == 4 && t.Shape[3] == 16 {
		return []int{32 * t.Shape[2], t.Shape[1], t.Shape[0]}
	}
	if len(t.Shape) != 2 {
		p.fail("tensor %q: %w: codes of shape %v, want two dimensions", t.Name, safetensors.ErrFormat, t.Shape)
		return []int{1}
	}
	x, y := t.Shape[0], t.Shape[1]
	switch {
	case t.DType == "U8":
		return []int{2 * y, x}
	case p.quant.method == methodCompressed:
		return []int{8 * y, x}
	case p.quant.method == methodGPTQ:
		return []int{8 * x, y}
	}
	return []int{x, 8 * y}
}

// scaleOf finds the scale of a weight.
func (p *packer) scaleOf(t *safetensors.Tensor) *safetensors.Tensor {
	for _, end := range scaleNames {
		if s := p.weights.Tensor(t.Name + end); s != nil {
			return s
		}
	}
	p.fail("tensor %q: %w: its scale %s_scale is missing", t.Name, safetensors.ErrFormat, t.Name)
	return nil
}

// pack adds the tensor of weights in fewer bits; false: they are plain floats.
func (p *packer) pack(s *stack) bool {
	t := s.parts[0]
	_, float := floatTypes[t.DType]
	if !float && (s.columns != nil || s.change != nil) {
		p.fail("tensor %q: %w: weights of %s are not read where their columns change places or they are multiplied", t.Name, ErrUnsupported, t.DType)
		return false
	}
	switch {
	case p.isCodes(t) && p.quant.method == methodMXFP4:
		p.packMXFP4(s)
	case p.isCodes(t) && t.DType == "U8":
		p.packNVFP4(s)
	case p.isCodes(t):
		p.packGroups(s)
	case p.isTrits(t):
		p.packTrits(s)
	case p.quant.online && float && p.linear(t.Name):
		p.packOnline(s)
	case p.quant.method == methodFP8 && t.DType == "F8_E4M3":
		p.packFP8(s)
	default:
		return false
	}
	return true
}

// isTrits tells whether a tensor holds packed trits, four rows in one.
func (p *packer) isTrits(t *safetensors.Tensor) bool {
	return p.quant.method == methodBitNet && t.DType == "U8"
}

// linear tells whether a tensor is the matrix of a layer's linear module that was replaced by one
// of BitNet.
func (p *packer) linear(name string) bool {
	stem, ok := strings.CutSuffix(name, "_proj.weight")
	for _, module := range p.quant.except {
		ok = ok && !strings.Contains(stem+"_proj", module)
	}
	return ok
}

// ternaryTail is the size of what follows the trits of I2_S: the scale, and padding.
const ternaryTail = 32

// packTrits takes four trits a byte: row r of R is bits 2(r / (R/4)) of row r mod (R/4), one above the
// trit.
func (p *packer) packTrits(s *stack) {
	t, scale := s.parts[0], p.scaleOf(s.parts[0])
	if scale == nil {
		return
	}
	if len(t.Shape) != 2 || len(s.parts) != 1 {
		p.fail("tensor %q: %w: packed trits of shape %v, want two dimensions", t.Name, ErrUnsupported, t.Shape)
		return
	}
	factor, err := one(scale)
	if err != nil {
		p.fail("%w", err)
		return
	}
	if p.quant.divides {
		factor = 1 / factor
	}
	quarter := t.Shape[0]
	s.dims = []int{t.Shape[1], 4 * quarter}
	order := p.reorder(s.name, s.dims)
	trits := func(codes []byte, r int) error {
		if order != nil {
			r = order(r)
		}
		if err := t.Source.Read(codes, t.Offset+int64(r%quarter)*int64(len(codes))); err != nil {
			return err
		}
		shift := 2 * (r / quarter)
		for i := range codes {
			if codes[i] = codes[i] >> shift & 3; codes[i] == 3 {
				return fmt.Errorf("%w: column %d is no trit", safetensors.ErrFormat, i)
			}
		}
		return nil
	}
	p.addTernary(s, 0, trits, func() (float32, error) { return factor, nil })
}

// packOnline takes floats that the model makes ternary whenever it reads them (Ma et al. 2024, "The
// Era of 1-bit LLMs", §2): by their mean magnitude, rounded to one of -1, 0 and 1.
func (p *packer) packOnline(s *stack) {
	typ := floatTypes[s.parts[0].DType]
	factor := sync.OnceValues(func() (float32, error) { return meanMagnitude(s, typ) })
	each := typ.BlockBytes()
	trits := func(codes []byte, r int) error {
		mean, err := factor()
		if err != nil {
			return err
		}
		raw := codes[:each*s.dims[0]]
		if err := s.read(raw, r); err != nil {
			return err
		}
		inverse := 1 / mean
		for i := range s.dims[0] { // which overwrites no number before it is read
			x := math.RoundToEven(float64(number(typ, raw[each*i:]) * inverse))
			codes[i] = byte(int(min(1, max(-1, x))) + 1)
		}
		return nil
	}
	p.addTernary(s, each*s.dims[0], trits, func() (float32, error) {
		mean, err := factor()
		return rounded(mean, typ), err
	})
}

// meanMagnitude returns the mean of all magnitudes, at least 1e-5.
func meanMagnitude(s *stack, typ gguf.Type) (float32, error) {
	each, sum, n := typ.BlockBytes(), 0.0, 0
	raw := make([]byte, each*s.dims[0])
	for r := range storedRows(s.parts[0]) {
		if err := s.read(raw, r); err != nil {
			return 0, err
		}
		for at := 0; at < len(raw); at += each {
			sum += math.Abs(float64(number(typ, raw[at:])))
			n++
		}
	}
	mean := float32(max(1e-5, sum/float64(n)))
	if mean-mean != 0 {
		return 0, fmt.Errorf("%w: it holds a number that is infinite or NaN", safetensors.ErrFormat)
	}
	return mean, nil
}

// rounded returns x as a type has it.
func rounded(x float32, typ gguf.Type) float32 {
	raw := make([]byte, typ.BlockBytes())
	if err := gguf.Quantize(typ, raw, []float32{x}); err != nil {
		panic(err) // types of floats take all numbers
	}
	return number(typ, raw)
}

// addTernary adds a matrix of trits times a scale: as I2_S where its rows are whole blocks, else in
// float32. trits sets codes to those of a row, one above each trit; it may use extra bytes
// behind them.
func (p *packer) addTernary(s *stack, extra int, trits func(codes []byte, r int) error, scale func() (float32, error)) {
	cols := s.dims[0]
	out := gguf.Tensor{Name: s.name, Type: gguf.I2_S, Dims: s.dims}
	m := &rows{name: s.name, n: s.dims[1], size: cols / 4, scratchSize: max(cols, extra)}
	if cols%gguf.I2_S.BlockLen() == 0 {
		m.tail = func() ([]byte, error) {
			tail := make([]byte, ternaryTail)
			x, err := scale()
			putFloat(tail, x)
			return tail, err
		}
		m.row = func(dst, codes []byte, r int) error {
			if err := trits(codes[:max(cols, extra)], r); err != nil {
				return err
			}
			packI2S(dst, codes[:cols])
			return nil
		}
	} else {
		out.Type, m.size = gguf.F32, 4*cols
		m.row = func(dst, codes []byte, r int) error {
			x, err := scale()
			if err == nil {
				err = trits(codes[:max(cols, extra)], r)
			}
			for i := range cols {
				putFloat(dst[4*i:], float32(int(codes[i])-1)*x)
			}
			return err
		}
	}
	p.tensors = append(p.tensors, out.At(m.source(), 0))
}

// packI2S writes codes as blocks of I2_S: of 128 columns, code i of each 32 goes to byte i, the first 32 to
// the top bits.
func packI2S(dst, codes []byte) {
	for ; len(codes) > 0; dst, codes = dst[32:], codes[128:] {
		for i := range 32 {
			dst[i] = codes[i]<<6 | codes[32+i]<<4 | codes[64+i]<<2 | codes[96+i]
		}
	}
}

// packFP8 adds the tensor of numbers of E4M3.
func (p *packer) packFP8(s *stack) {
	if m := p.fp8(s); m != nil {
		p.tensors = append(p.tensors, gguf.Tensor{Name: s.name, Type: gguf.F32, Dims: s.dims}.At(m.source(), 0))
	}
}

// widened returns t, or where it holds numbers of E4M3 a tensor of what they mean; nil: its scales are missing.
func (p *packer) widened(t *safetensors.Tensor) *safetensors.Tensor {
	if p.quant.method != methodFP8 || t.DType != "F8_E4M3" {
		return t
	}
	m := p.fp8(&stack{name: t.Name, parts: []*safetensors.Tensor{t}, dims: fastestFirst(t.Shape)})
	if m == nil {
		return nil
	}
	return &safetensors.Tensor{Name: t.Name, DType: "F32", Shape: t.Shape, Source: m.source()}
}

// fp8 widens numbers of E4M3 with their scales, one a block or one a tensor, to float32: no
// type of 16 bits holds all products.
func (p *packer) fp8(s *stack) *rows {
	cols := s.dims[0]
	scales := map[*safetensors.Tensor][]float32{}
	across := 1
	for _, t := range s.parts {
		scale := p.scaleOf(t)
		if scale == nil {
			return nil
		}
		down := 1
		if n := p.quant.block; n[0] > 0 {
			down, across = (storedRows(t)+n[0]-1)/n[0], (cols+n[1]-1)/n[1]
		}
		x, err := scaleNumbers(scale, down*across)
		if err != nil {
			p.fail("%w", err)
			return nil
		}
		scales[t] = x
	}
	block := p.quant.block
	m := &rows{name: s.name, n: (&gguf.Tensor{Dims: s.dims}).Rows(), size: 4 * cols, scratchSize: cols}
	m.row = func(dst, raw []byte, r int) error {
		if err := s.read(raw, r); err != nil {
			return err
		}
		t, at := s.at(r)
		mine := scales[t]
		if block[0] > 0 {
			mine = mine[at/block[0]*across:]
		}
		for i := range cols {
			x := mine[0]
			if block[0] > 0 {
				x = mine[i/block[1]]
			}
			putFloat(dst[4*i:], e4m3[raw[i]]*x)
		}
		return nil
	}
	return m
}

// scaleNumbers reads all n numbers of scales.
func scaleNumbers(t *safetensors.Tensor, n int) ([]float32, error) {
	typ, ok := floatTypes[t.DType]
	if !ok || t.Len() != n {
		return nil, fmt.Errorf("tensor %q: %w: %s of shape %v, want %d numbers of F32, F16 or BF16", t.Name, safetensors.ErrFormat, t.DType, t.Shape, n)
	}
	raw, each := make([]byte, t.Bytes()), typ.BlockBytes()
	if err := t.Source.Read(raw, t.Offset); err != nil {
		return nil, err
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = number(typ, raw[each*i:])
	}
	return out, nil
}

// e4m3 are the values of FP8's bytes (Micikevicius et al. 2022, "FP8 Formats for Deep Learning", §3): sign, four
// bits of exponent, three of fraction; no infinities.
var e4m3 = func() (values [256]float32) {
	for i := range values {
		exponent, fraction := i>>3&15, float64(i&7)
		x := math.Ldexp(1+fraction/8, exponent-7)
		switch {
		case exponent == 0:
			x = math.Ldexp(fraction/8, -6)
		case i&127 == 127:
			x = math.NaN()
		}
		if i >= 128 {
			x = -x
		}
		values[i] = float32(x)
	}
	return values
}()
