// Command agent plays an agent without a model: script.json says what the model
// would do. It is an MCP client of `workshop tools`, as any other.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// step is one thing that the model does, and what must come of it.
type step struct {
	Say       string         `json:"say"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Answer    string         `json:"answer"` // of the person, who must be asked; empty: nobody may be asked
	Fails     bool           `json:"fails"`
	Expect    string         `json:"expect"` // a part of the answer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, "script.json", "reviewer"); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, script, worker string) error {
	data, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal(data, &steps); err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	person := &person{}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent-example", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person.ask})
	server := exec.Command("workshop", "tools", worker)
	server.Stderr = os.Stderr
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: `make build`, then put its bin into PATH", err)
	}
	if err != nil {
		return err
	}
	defer session.Close()
	fmt.Printf("The model is told:\n%s\n", indent(session.InitializeResult().Instructions))
	for _, s := range steps {
		if err := s.play(ctx, session, person); err != nil {
			return err
		}
	}
	return nil
}

func (s step) play(ctx context.Context, session *mcp.ClientSession, person *person) error {
	arguments, err := json.Marshal(s.Arguments)
	if err != nil {
		return err
	}
	fmt.Printf("\nmodel:  %s\n  call  %s %s\n", s.Say, s.Tool, arguments)
	person.next, person.asked = s.Answer, 0
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: s.Tool, Arguments: s.Arguments})
	failed, text := err != nil, ""
	if err != nil {
		text = err.Error()
	} else {
		failed = result.IsError
		for _, c := range result.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				text += t.Text
			}
		}
	}
	fmt.Print(indent(text))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != s.Fails:
		return fmt.Errorf("%s: failed: %v, which was not expected", s.Tool, failed)
	case !strings.Contains(strings.ToLower(text), strings.ToLower(s.Expect)):
		return fmt.Errorf("%s: the answer doesn't hold %q", s.Tool, s.Expect)
	case s.Answer == "" && person.asked > 0, s.Answer != "" && person.asked != 1:
		return fmt.Errorf("%s: the person was asked %d times", s.Tool, person.asked)
	}
	return nil
}

// person answers as the script says.
type person struct {
	next  string
	asked int
}

func (p *person) ask(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.asked++
	fmt.Print(indent("asks: " + r.Params.Message))
	if p.next == "" {
		return nil, errors.New("the script has no answer")
	}
	fmt.Printf("person: %s\n", p.next)
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": p.next}}, nil
}

func indent(text string) string {
	return "        " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n        ") + "\n"
}
