// Goopenai asks a Lutra server through github.com/sashabaranov/go-openai: a chat, a
// stream, a structured answer, tools, vectors and a refusal.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/sashabaranov/go-openai"
	"github.com/sashabaranov/go-openai/jsonschema"
)

var question = openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser,
	Content: "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}

// user is a client and the model that it asks.
type user struct {
	*openai.Client
	model string
}

func main() {
	log.SetFlags(0)
	cfg := openai.DefaultConfig(setting("LUTRA_API_KEY", "none"))
	cfg.BaseURL = setting("LUTRA_URL", "http://127.0.0.1:8080") + "/v1"
	u := user{openai.NewClientWithConfig(cfg), setting("LUTRA_MODEL", "default")}
	for _, example := range []func(context.Context) error{u.chat, u.stream, u.structured, u.tools, u.embeddings, u.refusal} {
		if err := example(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
}

func setting(name, absent string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return absent
}

// ask is a request. The library leaves a temperature of 0 out, so this is the least
// one that it sends.
func (u user) ask(messages ...openai.ChatCompletionMessage) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: u.model, Messages: messages, MaxCompletionTokens: 200, Temperature: 1e-6}
}

func (u user) chat(ctx context.Context) error {
	answer, err := u.CreateChatCompletion(ctx, u.ask(question))
	if err != nil {
		return err
	}
	if answer.Choices[0].Message.Content == "" || answer.Choices[0].FinishReason != openai.FinishReasonStop {
		return fmt.Errorf("unexpected: %+v", answer)
	}
	fmt.Printf("chat: %q\n", answer.Choices[0].Message.Content)
	return nil
}

func (u user) stream(ctx context.Context) error {
	chunks, err := u.CreateChatCompletionStream(ctx, u.ask(question))
	if err != nil {
		return err
	}
	defer chunks.Close()
	var text strings.Builder
	for {
		chunk, err := chunks.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		text.WriteString(chunk.Choices[0].Delta.Content)
	}
	if text.Len() == 0 {
		return errors.New("unexpected: an empty stream")
	}
	fmt.Printf("stream: %q\n", text.String())
	return nil
}

func (u user) structured(ctx context.Context) error {
	var estimate struct {
		Eggs int  `json:"eggs"`
		Sure bool `json:"sure"`
	}
	schema, err := jsonschema.GenerateSchemaForType(estimate)
	if err != nil {
		return err
	}
	req := u.ask(question)
	req.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
		JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "estimate", Schema: schema, Strict: true}}
	answer, err := u.CreateChatCompletion(ctx, req)
	if err != nil {
		return err
	}
	if err := schema.Unmarshal(answer.Choices[0].Message.Content, &estimate); err != nil {
		return err
	}
	fmt.Printf("structured: %+v\n", estimate)
	return nil
}

// multiplyArguments is a JSON schema.
var multiplyArguments = json.RawMessage(`{"type": "object",
	"properties": {"a": {"type": "integer", "minimum": 0, "maximum": 999}, "b": {"type": "integer", "minimum": 0, "maximum": 999}},
	"required": ["a", "b"], "additionalProperties": false}`)

func (u user) tools(ctx context.Context) error {
	var args struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	req := u.ask(question)
	req.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: "multiply", Description: "The product of two whole numbers.", Parameters: multiplyArguments}}}
	// The embedded models have never seen a tool, so the first answer is made a call.
	// Models that know tools decide by themselves: leave ToolChoice out.
	req.ToolChoice = "required"
	first, err := u.CreateChatCompletion(ctx, req)
	if err != nil {
		return err
	}
	message := first.Choices[0].Message
	if len(message.ToolCalls) != 1 || message.ToolCalls[0].Function.Name != "multiply" {
		return fmt.Errorf("unexpected: %+v", first)
	}
	if err := json.Unmarshal([]byte(message.ToolCalls[0].Function.Arguments), &args); err != nil {
		return err
	}
	req.Messages = append(req.Messages, message, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool,
		ToolCallID: message.ToolCalls[0].ID, Content: fmt.Sprint(args.A * args.B)})
	req.ToolChoice = "none"
	last, err := u.CreateChatCompletion(ctx, req)
	if err != nil {
		return err
	}
	if last.Choices[0].Message.Content == "" {
		return fmt.Errorf("unexpected: %+v", last)
	}
	fmt.Printf("tools: multiply(%d, %d), then %q\n", args.A, args.B, last.Choices[0].Message.Content)
	return nil
}

// embeddings names no model, which is the first that makes vectors.
func (u user) embeddings(ctx context.Context) error {
	vectors, err := u.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{Input: []string{"a hen", "an egg"}})
	var fault *openai.APIError
	if errors.As(err, &fault) && fault.Code == "model_not_found" {
		fmt.Println("embeddings: this server has no model for them")
		return nil
	}
	if err != nil {
		return err
	}
	if len(vectors.Data) != 2 {
		return fmt.Errorf("unexpected: %d vectors", len(vectors.Data))
	}
	fmt.Printf("embeddings: %d vectors of %d\n", len(vectors.Data), len(vectors.Data[0].Embedding))
	return nil
}

func (u user) refusal(ctx context.Context) error {
	req := u.ask(question)
	req.TopP = 9
	_, err := u.CreateChatCompletion(ctx, req)
	var fault *openai.APIError
	if !errors.As(err, &fault) || fault.HTTPStatusCode != 400 || fault.Param == nil || *fault.Param != "top_p" {
		return fmt.Errorf("unexpected: %w", err)
	}
	fmt.Println("errors:", fault.Message)
	return nil
}
