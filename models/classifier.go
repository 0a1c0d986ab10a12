package models

import (
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Classifier is the head of a model that ranks by the pooled hidden state x of a query and a document. It
// computes, with sums in float64,
//
//	norm(activation(dense·x + bias))·out + bias
//
// where all but out may be missing. BERT and RoBERTa have tanh and no norm, ModernBERT has GELU and
// LayerNorm. A decoder that answers with yes or no has out alone, the rows of these words in the output
// matrix.
type Classifier struct {
	dense, denseBias []float32 // [Hidden][Hidden], [Hidden]; nil: none
	activate         func(x []float32)
	norm             []float32 // [Hidden] of a LayerNorm; nil: none
	eps              float32
	out, outBias     []float32 // [1][Hidden] and [1], or nil; or [2][Hidden], yes and no
}

// Scores returns one score, or the scores of yes and no, of a pooled hidden state, which it does not change.
func (c *Classifier) Scores(state []float32) []float32 {
	if c.dense != nil {
		state = multiply(c.dense, c.denseBias, state)
		c.activate(state)
	}
	if c.norm != nil {
		state = slices.Clone(state)
		vector.LayerNorm(state, c.norm, make([]float32, len(state)), c.eps)
	}
	return multiply(c.out, c.outBias, state)
}

// multiply computes matrix·x + bias, in the order of columns.
func multiply(matrix, bias, x []float32) []float32 {
	y := make([]float32, len(matrix)/len(x))
	for i := range y {
		sum := 0.0
		for k, w := range matrix[i*len(x) : (i+1)*len(x)] {
			sum += float64(w) * float64(x[k])
		}
		if bias != nil {
			sum += float64(bias[i])
		}
		y[i] = float32(sum)
	}
	return y
}

func tanh(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Tanh(float64(v)))
	}
}

// loadClassifier loads an encoder's head, by the names of llama.cpp's converter.
func loadClassifier(t *tensors, m *spec) *Classifier {
	const dense, out, norm = "cls.weight", "cls.output.weight", "cls.norm.weight"
	x := t.File().Tensor(out)
	if x == nil {
		t.Fail("tensor %s is missing", out)
		return nil
	}
	if x.Rows() != 1 {
		t.Fail("%s has %d rows: an encoder that ranks has one", out, x.Rows())
		return nil
	}
	c := &Classifier{activate: tanh, eps: m.NormEps}
	c.out, c.outBias = t.Vector(out, m.Hidden, 1), t.OptionalVector("cls.output.bias", 1)
	if t.Has(dense) {
		c.dense, c.denseBias = t.Vector(dense, m.Hidden, m.Hidden), t.OptionalVector("cls.bias", m.Hidden)
	} else {
		t.Warn("the file has no %s: the converter has left out a layer of most models of this kind, without which their scores mean little", dense)
	}
	if m.arch.preNormEncoder() {
		c.activate, c.norm = vector.GELU, t.OptionalVector(norm, m.Hidden)
	}
	return c
}

// loadYesNo makes a ranker of a plain conversion of Qwen3-Reranker, a generator that answers with yes or
// no and is known by its name alone; nil: the model is no such conversion.
func loadYesNo(t *tensors, m *spec) *Classifier {
	if !m.arch.yesNo || t.rotations.Any() {
		return nil
	}
	base, _ := t.File().Metadata.String("general.basename")
	if !strings.Contains(strings.ToLower(m.Name+" "+base), "reranker") {
		return nil
	}
	tokens, _ := t.File().Metadata.Strings("tokenizer.ggml.tokens")
	name := outputTensor
	if !t.Has(name) {
		name = embeddingTensor
	}
	x := t.Tensor(name, m.Hidden, m.Vocab)
	if x == nil {
		return nil
	}
	c := &Classifier{out: make([]float32, 2*m.Hidden)}
	for i, answer := range []string{"yes", "no"} {
		token := slices.Index(tokens, answer)
		if token < 0 {
			return nil
		}
		if err := x.Dequantize(rowOf(c.out, i, m.Hidden), token*m.Hidden); err != nil {
			t.Fail("%v", err)
		}
	}
	return c
}

// qwenRerank is the prompt of Qwen3-Reranker, from its authors (Zhang et al. 2025, "Qwen3 Embedding", §2).
const qwenRerank = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
	"Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n" +
	"<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n" +
	"<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
