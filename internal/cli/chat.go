package cli

import (
	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/chat"
)

func newChat() *cobra.Command {
	var a askFlags
	var forget bool
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a model in the terminal",
		Long: `Reads a line, streams the answer, and remembers the conversation. Arrow keys edit
the line and bring back earlier ones, also of earlier chats; Ctrl-C stops the
answer, Ctrl-D leaves. A line that ends in \ goes on in the next one, as with Alt-Enter,
and """ begins and ends a text of several lines. /help lists the commands: settings,
searches, tools, conversations to keep.

If standard input or output is not a terminal, each line is a question and only
answers are printed; errors go to standard error.

--url, --api-key and --model are as of lutra ask.`,
		Example: `  lutra chat
  lutra chat --model model.gguf --system "Answer in one sentence."
  lutra chat --url http://127.0.0.1:8080/v1
  printf '%s\n' "What is 12 * 7?" "What is 9 * 8?" | lutra chat`,
		Args: Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(answerer chat.Answerer) error {
				return chat.Run(cmd.Context(), stopperOf(cmd.Context()).stop, answerer, &a.Options, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), !forget)
			})
		},
	}
	a.register(cmd.Flags())
	cmd.Flags().BoolVar(&forget, "no-history", false, "do not keep the lines for later chats")
	return cmd
}
