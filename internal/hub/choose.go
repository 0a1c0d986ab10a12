package hub

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf/parts"
)

// ErrChoice is the kind of error that says that a name fits no file, or several.
var ErrChoice = errors.New("no single file")

// errSeveral is the kind of ErrChoice where there are several.
var errSeveral = fmt.Errorf("%w", ErrChoice)

// If a name says no more than a repository with several models, the first of these that it has is
// taken. Types of few bits, which models are trained for, come first, the smallest file of the same
// weights before others. Then come types that every model can be rounded to, as llama.cpp and Unsloth
// recommend. A file larger than free memory is passed over when it is pulled, see instead.
var (
	lowBitQuants  = []string{"PTQ1_0", "PQ2_0", "TQ1_0", "TQ2_0", "I2_S", "Q2_0", "Q1_0"}
	defaultQuants = []string{"UD-Q4_K_XL", "Q4_K_M", "Q8_0"}
)

// companions are parts of the names of GGUF files that are no language models: projectors of images,
// importance matrices, heads that draft. The name of a head for several tokens begins with
// leadingHead; -MTP- within a name means a whole model with such a head.
var companions = []string{"mmproj", "imatrix", "eagle3-", "dflash-", "dspark-"}

const leadingHead = "mtp-"

// dynamic begins the names of Unsloth's mixtures of types: in UD-TQ1_0 hardly a tensor is ternary.
const dynamic = "ud-"

// choose finds the file that ref names in a repository's list. Of a model in several parts it is the
// first, whether it is there or not.
func choose(ref Ref, files []string) (string, error) {
	models := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !isModel(f) })
	slices.Sort(models)
	found, err := candidates(ref, files, models)
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", choiceError(errSeveral, ref, "fits several files; name one", found)
	}
	return parts.First(found[0]), nil
}

// chosen returns the files of the model that ref names in a repository's list, and why it is that
// model; an empty reason means that there was no choice.
func chosen(ref Ref, files []string, r room) (set []string, why string, err error) {
	if set := checkpoint(files); set != nil && wantsCheckpoint(ref, files) {
		return set, "", nil
	}
	file, err := choose(ref, files)
	if err != nil {
		return nil, "", err
	}
	file, why = instead(ref, file, files, r)
	set, err = together(ref, file, files)
	return set, why, err
}

// candidates returns the files that ref can mean, one at least.
func candidates(ref Ref, files, models []string) ([]string, error) {
	switch {
	case ref.File != "":
		same := func(f string) bool { return strings.EqualFold(f, ref.File) }
		switch {
		case slices.Contains(files, ref.File) && isModel(ref.File):
			return []string{ref.File}, nil
		case slices.ContainsFunc(files, func(f string) bool { return same(f) && !isModel(f) }):
			return nil, choiceError(ErrChoice, ref, "is no language model", models)
		}
		if found := filter(models, same); len(found) > 0 {
			return found, nil
		}
		return nil, choiceError(ErrChoice, ref, "is not there", models)
	case ref.Quant != "":
		if found := quantised(models, ref.Quant); len(found) > 0 {
			return found, nil
		}
		return nil, choiceError(ErrChoice, ref, "fits no file", models)
	}
	if all := firstParts(models); len(all) == 1 {
		return all, nil
	}
	if kinds := ofKinds(models); len(kinds) > 0 {
		return kinds[0].files, nil
	}
	if len(models) == 0 {
		return nil, choiceError(ErrChoice, ref, "has no GGUF model, nor the safetensors of one with config.json and tokenizer.json", nil)
	}
	return nil, choiceError(errSeveral, ref, "has several models; name one", firstParts(models))
}

// kind is a type that is preferred to the others, with the files that have it and the reason.
type kind struct {
	files []string
	why   string
}

// ofKinds returns the types that models have, the best first.
func ofKinds(models []string) (kinds []kind) {
	for _, q := range lowBitQuants {
		plain := filter(models, func(f string) bool { return !strings.Contains(strings.ToLower(f), dynamic+strings.ToLower(q)) })
		if found := quantised(plain, q); len(found) > 0 {
			kinds = append(kinds, kind{found, q + " is what a model of few bits was trained for"})
		}
	}
	few := len(kinds) > 0
	for _, q := range defaultQuants {
		if found := quantised(models, q); len(found) > 0 {
			why := q + " is a good size for quality"
			if !few {
				why += ", and the repository has no type of few bits"
			}
			kinds = append(kinds, kind{found, why})
		}
	}
	return kinds
}

// room is the memory that a choice is made for. The zero room is boundless.
type room struct {
	free  int64                   // bytes; 0: whatever is needed
	needs func(file string) int64 // bytes of all parts of the model that a file begins
}

// sameWeights is the least part of a preferred file's size that a smaller one of the same model
// has: from 8 bits down to 2. What is smaller yet is another model, such as one that drafts.
const sameWeights = 4

// instead returns the model to take in place of file, which choose found for a name that says no more than the
// repository. It says why, or nothing if there was no choice. A model larger than the room gives way to the next kind
// that fits, or to the largest model that fits.
func instead(ref Ref, file string, files []string, r room) (chosen, why string) {
	models := filter(files, isModel)
	if ref.File != "" || ref.Quant != "" || len(firstParts(models)) < 2 {
		return file, ""
	}
	kinds := ofKinds(models)
	why = kinds[0].why
	if r.free == 0 || r.needs(file) <= r.free {
		return file, why
	}
	passed := fmt.Sprintf("; %s has %s, and %s of memory are free", file, gigabytes(r.needs(file)), gigabytes(r.free))
	fits := func(f string) bool {
		n := r.needs(f)
		return n <= r.free && n >= r.needs(file)/sameWeights
	}
	for _, k := range kinds[1:] {
		if len(k.files) == 1 && fits(k.files[0]) {
			return k.files[0], k.why + passed
		}
	}
	smaller := filter(firstParts(models), fits)
	if len(smaller) == 0 {
		return file, why + passed + ", too few for it, and there is no smaller file of the model that fits"
	}
	largest := slices.MaxFunc(smaller, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.needs(a), r.needs(b)), strings.Compare(b, a))
	})
	return largest, "it is the largest that fits" + passed
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// isModel tells language models by their names.
func isModel(file string) bool {
	base := strings.ToLower(path.Base(file))
	return isGGUF(file) && !strings.HasPrefix(base, leadingHead) && !slices.ContainsFunc(companions, func(part string) bool { return strings.Contains(base, part) })
}

// quantised returns the files with a quantisation in their path, as a word of its
// own: Q2_0 is not in PQ2_0.
func quantised(files []string, quant string) []string {
	word := regexp.MustCompile(`(?i)(^|[^a-z0-9])` + regexp.QuoteMeta(quant) + `[./-]`)
	return firstParts(filter(files, word.MatchString))
}

// together returns the files that make the model which a file is, or begins. Files
// that are not there are an error.
func together(ref Ref, file string, files []string) ([]string, error) {
	n, split := parts.Parse(file)
	if !split {
		return []string{file}, nil
	}
	if n.Count > parts.Max {
		return nil, fmt.Errorf("%w: %s is one of %d parts, at most %d are read", ErrChoice, file, n.Count, parts.Max)
	}
	all := n.All()
	if lacking := filter(all, func(f string) bool { return !slices.Contains(files, f) }); len(lacking) > 0 {
		return nil, choiceError(ErrChoice, ref, fmt.Sprintf("is a model in %d parts, and some are not there", n.Count), lacking)
	}
	return all, nil
}

// firstParts leaves one file of each model.
func firstParts(files []string) []string {
	return filter(files, func(f string) bool {
		n, split := parts.Parse(f)
		return !split || n.No == 1
	})
}

func filter(files []string, keep func(string) bool) (kept []string) {
	for _, f := range files {
		if keep(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

func choiceError(kind error, ref Ref, what string, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("%w: %s %s", kind, ref, what)
	}
	return fmt.Errorf("%w: %s %s: %s", kind, ref, what, listed(files))
}

// listed bounds how many candidates an error names.
func listed(files []string) string {
	const most = 24
	if len(files) > most {
		return strings.Join(files[:most], ", ") + " ..."
	}
	return strings.Join(files, ", ")
}
