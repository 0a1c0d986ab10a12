package hub

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ErrChoice is the kind of error that says that a name fits no file, or several.
var ErrChoice = errors.New("no single file")

// errSeveral is the kind of ErrChoice where there are several.
var errSeveral = fmt.Errorf("%w", ErrChoice)

// defaultQuants are taken, the first first, where a repository has several
// models and none is asked for; as llama.cpp does.
var defaultQuants = []string{"Q4_K_M", "Q8_0"}

// companions are parts of the names of GGUF files that are no language models:
// projectors of images, importance matrices, heads that draft.
var companions = []string{"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"}

// choose finds the file that ref names among those of a repository.
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
	if first, n, ok := splitFile(found[0]); ok {
		return "", fmt.Errorf("%w: %s is one of %d parts, and parts are not read: merge them with llama.cpp's gguf-split --merge, or choose another of %s",
			ErrChoice, first, n, listed(slices.DeleteFunc(models, func(f string) bool { _, _, split := splitFile(f); return split })))
	}
	return found[0], nil
}

// candidates are the files that ref can mean, one at least.
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
	for _, q := range defaultQuants {
		if found := quantised(models, q); len(found) > 0 {
			return found, nil
		}
	}
	if len(models) == 0 {
		return nil, choiceError(ErrChoice, ref, "has no GGUF model", nil)
	}
	return nil, choiceError(errSeveral, ref, "has several models; name one", models)
}

// isModel tells language models by their names.
func isModel(file string) bool {
	base := strings.ToLower(path.Base(file))
	return isGGUF(file) && !slices.ContainsFunc(companions, func(part string) bool { return strings.Contains(base, part) })
}

// quantised are the files with a quantisation in their path, as a word of its
// own: Q2_0 is not in PQ2_0.
func quantised(files []string, quant string) []string {
	word := regexp.MustCompile(`(?i)(^|[^a-z0-9])` + regexp.QuoteMeta(quant) + `[./-]`)
	return firstParts(filter(files, word.MatchString))
}

var splitName = regexp.MustCompile(`(?i)^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// splitFile tells whether a file is one of several that make a model.
func splitFile(file string) (name string, parts int, split bool) {
	m := splitName.FindStringSubmatch(file)
	if m == nil {
		return file, 1, false
	}
	_, err := fmt.Sscanf(m[3], "%d", &parts)
	return file, parts, err == nil && parts > 1
}

// firstParts leaves one file of each model.
func firstParts(files []string) []string {
	return filter(files, func(f string) bool {
		m := splitName.FindStringSubmatch(f)
		return m == nil || m[2] == "00001"
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
