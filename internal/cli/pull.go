package cli

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

func newPull() *cobra.Command {
	return &cobra.Command{
		Use:   "pull NAME",
		Short: "Download a model",
		Long: `Downloads a GGUF file from the Hugging Face hub into its cache, which other programs
share, and prints where it is. NAME is one of the catalogue (lutra list --catalogue),
or hf:OWNER/REPO:FILE, hf:OWNER/REPO:QUANT or hf:OWNER/REPO. With neither FILE nor QUANT it
downloads the only GGUF file; if there are several, the one of few bits (PTQ1_0, PQ2_0, TQ1_0,
TQ2_0, I2_S, Q2_0, Q1_0), else UD-Q4_K_XL, Q4_K_M or Q8_0, whichever comes first and fits into
free memory, or the largest that does. A repository without GGUF is downloaded as safetensors.
It says which file it takes, and why.

ollama:NAME, ollama:NAME:TAG and ollama:NAMESPACE/NAME:TAG are models of Ollama's registry: the
GGUF file comes, with the parameters that its answers are sampled by.

A model in several parts (NAME-00001-of-00003.gguf) comes with all of them. An
interrupted download goes on where it stopped. The file is held against its size and
SHA-256. HF_TOKEN opens repositories that want one; HF_HOME moves the cache.`,
		Example: `  lutra pull bonsai-1.7b
  lutra pull hf:Qwen/Qwen3-4B-GGUF:Q4_K_M
  lutra pull hf:microsoft/bitnet-b1.58-2B-4T-gguf
  lutra pull ollama:smollm2:135m`,
		Args: Arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := hubName(args[0])
			if err != nil {
				return err
			}
			g := getter{errOut: cmd.ErrOrStderr()}
			h, err := g.open()
			if err != nil {
				return err
			}
			path, err := g.pull(cmd.Context(), h, ref)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

func newRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Delete a downloaded model",
		Long: `Deletes a model from the cache, by a name that lutra list shows; also what has come of
one so far. hf:OWNER/REPO alone deletes all that the cache has of the repository.`,
		Example: `  lutra rm bonsai-1.7b
  lutra rm hf:Qwen/Qwen3-4B-GGUF:Q4_K_M`,
		Args: Arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := hubName(args[0])
			if err != nil {
				return err
			}
			h, err := (&getter{}).open()
			if err != nil {
				return err
			}
			freed, err := h.Remove(ref)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s deleted, %s freed\n", args[0], output.Bytes(freed))
			return err
		},
	}
}

// hubName reads a name of the hub, of Ollama's registry or of the catalogue.
func hubName(arg string) (hub.Ref, error) {
	ref, ok, err := hub.Resolve(arg)
	switch {
	case err != nil:
		return ref, usage.Error{Err: err}
	case !ok && looksRemote(arg) != "":
		return ref, usage.Errorf("%q is not in the catalogue; did you mean %s?", usage.Brief(arg), looksRemote(arg))
	case !ok:
		return ref, usage.Errorf("%q is not in the catalogue (lutra list --catalogue); files of the hub are named as hf:OWNER/REPO:FILE, models of Ollama's registry as ollama:NAME:TAG%s",
			usage.Brief(arg), usage.DidYouMean(arg, hub.Names()))
	}
	return ref, nil
}

// onTheHub is a repository of the hub as people copy it: OWNER/REPO, or its page's address.
var onTheHub = regexp.MustCompile(`^(?:https?://(?:huggingface\.co|hf\.co)/)?([\w.-]+/[\w.-]+)(?:/(?:blob|resolve|tree)/[^/]+(?:/(.+?\.gguf))?)?/?(?:\?.*)?$`)

// looksRemote returns the name of what arg means on the hub; empty: it looks like nothing
// there.
func looksRemote(arg string) string {
	m := onTheHub.FindStringSubmatch(arg)
	if m == nil {
		return ""
	}
	name := hub.Scheme + m[1]
	if m[2] != "" {
		name += ":" + m[2]
	}
	if _, ok, err := hub.Resolve(name); err != nil || !ok {
		return ""
	}
	return name
}
