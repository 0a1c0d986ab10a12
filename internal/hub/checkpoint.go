package hub

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A checkpoint is a model as transformers saves it: safetensors in the root of a repository, with
// the files that say what they mean.

// The files of a checkpoint besides the weights. Those that others need come first; of the
// rest a repository has some.
const (
	configFile    = "config.json"
	tokenizerFile = "tokenizer.json"
)

var optionalFiles = []string{"tokenizer_config.json", "generation_config.json", "chat_template.jinja", "1_Pooling/config.json"}

// The weights of a checkpoint, in one file or in several.
const (
	wholeWeights = "model.safetensors"
	weightIndex  = "model.safetensors.index.json"
)

var weightShard = regexp.MustCompile(`^model-(\d{5})-of-(\d{5})\.safetensors$`)

// maxShards bounds the files of a checkpoint's weights: ten times what the largest have.
const maxShards = 1024

// checkpoint returns the files of a repository that make a checkpoint, config.json first and weights
// last; nil: it has none, or not all of one.
func checkpoint(files []string) (set []string) {
	has := func(name string) bool { return slices.Contains(files, name) }
	if !has(configFile) || !has(tokenizerFile) {
		return nil
	}
	set = append([]string{configFile, tokenizerFile}, filter(optionalFiles, has)...)
	set = append(set, filter([]string{weightIndex}, has)...)
	shards := filter(files, weightShard.MatchString)
	slices.Sort(shards)
	switch {
	case len(shards) == 0 && has(wholeWeights), !has(weightIndex) && has(wholeWeights):
		return append(set, wholeWeights)
	case !has(weightIndex) || len(shards) == 0 || len(shards) > maxShards:
		return nil
	}
	if count, _ := strconv.Atoi(weightShard.FindStringSubmatch(shards[0])[2]); count != len(shards) {
		return nil
	}
	return append(set, shards...)
}

// wantsCheckpoint tells whether a name can mean one: it names no file, and there is no GGUF
// model that it would mean.
func wantsCheckpoint(ref Ref, files []string) bool {
	return ref.File == "" && ref.Quant == "" && !slices.ContainsFunc(files, isModel)
}

// ofCheckpoint tells whether a file is, by its name, a part of a checkpoint.
func ofCheckpoint(file string) bool {
	return file == configFile || file == tokenizerFile || file == wholeWeights || file == weightIndex || slices.Contains(optionalFiles, file) || weightShard.MatchString(file)
}

// modelPath returns the path of a model whose first file that is: of a checkpoint its
// directory, of parameters the model that they belong to.
func (d repoFolder) modelPath(commit, file string) string {
	switch file {
	case configFile:
		return filepath.Dir(d.pointer(commit, file))
	case paramsFile:
		return d.pointer(commit, layerFile)
	}
	return d.pointer(commit, file)
}

// storedCheckpoint adds up the files of a snapshot's checkpoint; false: it has none that is
// whole.
func (d repoFolder) storedCheckpoint(ref Ref, commit string, files []string) (s Stored, ok bool) {
	set := checkpoint(files)
	if set == nil {
		return s, false
	}
	s = Stored{Ref: ref.with(""), Path: d.modelPath(commit, configFile)}
	newest := time.Time{}
	for _, f := range set {
		info, err := os.Stat(d.pointer(commit, f))
		if err != nil {
			return s, false
		}
		s.Size += info.Size()
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	s.Modified = newest
	return s, true
}
