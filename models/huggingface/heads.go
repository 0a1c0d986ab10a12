package huggingface

import "regexp"

// headNames are the tensors of the heads of reward models, in llama.cpp's words.
var headNames = map[string]string{
	"score.weight": "cls.output.weight", "score.bias": "cls.output.bias",
	"v_head.summary.weight": "cls.output.weight", "v_head.summary.bias": "cls.output.bias",
	"score.0.weight": "cls.weight", "score.0.bias": "cls.bias", "score.2.weight": "cls.output.weight", "score.2.bias": "cls.output.bias",
}

// rewardFormats names a format of package tts/reward, and the place of scores, for each class of reward model in
// config.json.
var rewardFormats = []struct {
	class  *regexp.Regexp
	format string
}{
	{regexp.MustCompile(`PrmModel|PRM_MODEL`), "skywork-prm"},
	{regexp.MustCompile(`ProcessRewardModel`), "qwen-prm"},
	{regexp.MustCompile(`TokenClassification`), "trl-prm"},
	{regexp.MustCompile(`SequenceClassification|RewardModel`), "sequence"},
}

// pooledByHead is pooling_type of a model whose head gives scores.
const pooledByHead = 4

// heads finds the head of a reward model, which replaces the vocabulary's.
func (b *builder) heads() {
	if b.err != nil || b.arch.encoder {
		return
	}
	found := false
	for name := range headNames {
		found = found || b.weights.Tensor(name) != nil
	}
	if !found {
		return
	}
	b.set("pooling_type", uint32(pooledByHead))
	if b.weights.Tensor("score.0.weight") != nil {
		b.md["lutra.verifier.activation"] = "relu"
	}
	classes := b.classes()
	for _, f := range rewardFormats {
		if f.class.MatchString(classes) {
			b.md["lutra.verifier.format"] = f.format
			break
		}
	}
}

// head names a tensor of such a head; without a name it is not read.
func (b *builder) head(name string) (to string, ok bool) {
	if b.arch.encoder {
		return b.encoderHead(name)
	}
	to, ok = headNames[name]
	return to, ok
}
