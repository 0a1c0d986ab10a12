package tokenizer

import (
	"errors"
	"fmt"
)

// ErrVocabulary says that two tokenizers number their tokens differently.
var ErrVocabulary = errors.New("tokenizer: different vocabularies")

// Same reports ErrVocabulary, with the first difference, unless every id means
// the same token in both.
func (v *vocab) Same(o *Tokenizer) error {
	if v.Size() != o.Size() {
		return fmt.Errorf("%w: %d tokens and %d", ErrVocabulary, v.Size(), o.Size())
	}
	for id, text := range v.tokens {
		if other := o.tokens[id]; text != other {
			return fmt.Errorf("%w: token %d is %q and %q", ErrVocabulary, id, text, other)
		}
	}
	return nil
}
