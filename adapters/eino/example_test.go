package genaieino_test

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/prompt"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// A chain of a template and a model, whose answer is read as it streams.
func Example() {
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()))
	chatModel := genaieino.WrapChatModel(newEchoModel(), tr)

	ctx := context.Background()
	chain, err := compose.NewChain[map[string]any, *schema.Message]().
		AppendChatTemplate(prompt.FromMessages(schema.FString, schema.UserMessage("{question}"))).
		AppendChatModel(chatModel).
		Compile(ctx, compose.WithGraphName("answer"))
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := chain.Stream(ctx, map[string]any{"question": "Who is there?"}, compose.WithCallbacks(genaieino.NewHandler(tr)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Close()
	for {
		piece, err := stream.Recv()
		if err != nil {
			break // io.EOF, or what broke the stream
		}
		fmt.Print(piece.Content)
	}
	fmt.Println()

	got, err := rec.Capture(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(got)
	// Output:
	// Who is there?
	// invoke_workflow answer [internal, workflow]
	//   prompt.render [internal, template]
	//   chat [client, inference]
}

// recordEino is what the cookbook shows.
func recordEino(inner model.ToolCallingChatModel) model.ToolCallingChatModel {
	tr := genaitrace.New()
	callbacks.AppendGlobalHandlers(genaieino.NewHandler(tr))
	chatModel := genaieino.WrapChatModel(inner, tr)
	return chatModel
}

func ExampleNewHandler() {
	chatModel := recordEino(newEchoModel())
	defer callbacks.InitCallbackHandlers(nil)
	answer, err := chatModel.Generate(context.Background(), []*schema.Message{schema.UserMessage("Hello")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Content)
	// Output: Hello
}

// An echoModel says again what it was told, word by word.
type echoModel struct{}

func newEchoModel() model.ToolCallingChatModel { return echoModel{} }

func (echoModel) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	return schema.AssistantMessage(in[len(in)-1].Content, nil), nil
}

func (echoModel) Stream(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	var pieces []*schema.Message
	for _, r := range in[len(in)-1].Content {
		pieces = append(pieces, schema.AssistantMessage(string(r), nil))
	}
	return schema.StreamReaderFromArray(pieces), nil
}

func (m echoModel) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }
