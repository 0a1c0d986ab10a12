package mixtures

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// ReadPrompts reads a data set as tokens of prompts. Of a file named .jsonl it takes each problem's question, as eval.Load reads
// them, in the model's chat template if it has one; of any other file the text as it is. A text longer than the model's context
// is cut, and each piece is a prompt. limit is the most prompts, 0 for no bound.
func ReadPrompts(ctx context.Context, path string, limit int, b *models.Bundle) ([][]int32, error) {
	texts, err := readTexts(ctx, path, limit, b)
	if err != nil {
		return nil, err
	}
	bos, hasBOS := b.Tokenizer.BOS()
	most := b.Model.Config().Context
	var prompts [][]int32
	for _, p := range texts {
		tokens := b.Tokenizer.Encode(nil, p.text, tokenizer.Options{AddSpecial: true, ParseSpecial: p.template})
		begins := hasBOS && len(tokens) > 0 && tokens[0] == bos
		for lo := 0; lo < len(tokens) && (limit == 0 || len(prompts) < limit); lo += most {
			piece := tokens[lo:min(lo+most, len(tokens))]
			if begins {
				piece[0] = bos // as lutra-lab perplexity has it
			}
			prompts = append(prompts, piece)
		}
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("%s holds no tokens", path)
	}
	return prompts, nil
}

// prompt is a text before it is encoded.
type prompt struct {
	text     string
	template bool // special tokens in it are the chat template's
}

func readTexts(ctx context.Context, path string, limit int, b *models.Bundle) ([]prompt, error) {
	if filepath.Ext(path) != ".jsonl" {
		text, err := os.ReadFile(path)
		return []prompt{{text: string(text)}}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	problems, err := eval.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if limit > 0 {
		problems = problems[:min(limit, len(problems))]
	}
	var texts []prompt
	for _, p := range problems {
		if b.Template == nil {
			texts = append(texts, prompt{text: p.Question})
			continue
		}
		text, err := b.Template.Render(ctx, template.Input{Messages: []template.Message{{Role: "user", Content: p.Question}}, AddGenerationPrompt: true})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		texts = append(texts, prompt{text, true})
	}
	return texts, nil
}
