package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoArgs struct {
	Text string `json:"text"`
}

// real is a server by the official SDK.
func real() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says it again.\x1b[31m", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, r *mcp.CallToolRequest, a echoArgs) (*mcp.CallToolResult, map[string]any, error) {
		return nil, map[string]any{"said": a.Text, "large": 7}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "step", Progress: float64(i + 1), Total: 3})
		}
		time.Sleep(50 * time.Millisecond)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "goodbye")
		os.Exit(7)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("it went wrong")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		os.WriteFile(os.Getenv("SEEN"), []byte("cancelled"), 0o600)
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "more"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "n"}}}, nil, nil
		})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, a struct{}) (*mcp.CallToolResult, any, error) {
		var said []string
		_, err := r.Session.ListRoots(ctx, nil) //lint:ignore SA1019 clients still have it
		said = append(said, fmt.Sprint(err))
		_, err = r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1}) //lint:ignore SA1019 clients still have it
		said = append(said, fmt.Sprint(err))
		_, err = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "your password?"})
		said = append(said, fmt.Sprint(err))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(said, "\n")}}}, nil, nil
	})
	return s
}

// serve plays a role until its input ends.
func serve(role string) {
	if role == "real" {
		fmt.Println("a log line that isn't MCP")
		real().Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		json.Unmarshal([]byte(line), &r)
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, result) }
		switch role + " " + r.Method {
		case "silent initialize":
		case "exits initialize":
			fmt.Fprintln(os.Stderr, "no such option")
			os.Exit(3)
		case "garbage initialize":
			for {
				if _, err := fmt.Println("this is no JSON"); err != nil {
					return
				}
			}
		case "endless initialize":
			for b := []byte(strings.Repeat("x", 1<<16)); ; {
				if _, err := os.Stdout.Write(b); err != nil {
					return
				}
			}
		case "deep initialize":
			fmt.Println(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`)
		case "asking tools/list": // a flood of requests, and their answers aren't read
			for i := 0; ; i++ {
				if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":{}}`+"\n", i); err != nil {
					return
				}
			}
		case "huge tools/list":
			var tools []string
			for i := range 1000 {
				tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
			}
			answer(`{"tools":[` + strings.Join(tools, ",") + `],"nextCursor":"x"}`)
		case "pages tools/list":
			answer(`{"tools":[],"nextCursor":"` + string(r.ID) + `"}`)
		case "bad tools/list":
			answer(`{"tools":[` + strings.Join(badTools, ",") + `]}`)
		case "worse tools/list": // names that are new with each list
			var list []string
			for i := range 5000 {
				list = append(list, fmt.Sprintf(`{"name":"no name %d"}`, i))
			}
			answer(`{"tools":[` + strings.Join(list, ",") + `,{"name":"ok","inputSchema":{"type":"object"}}]}`)
		case "bad tools/call":
			if strings.Contains(line, "number") {
				answer(`{"content":[],"structuredContent":{"n":9007199254740993},"other":[1]}`)
				continue
			}
			answer(`{"content":[{"type":"video","data":"x"}]}`)
		case "notes tools/list": // a flood of notifications
			for range 2000 { // more than are read in a second
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			}
			answer(`{"tools":[{"name":"ok","inputSchema":{"type":"object"}}]}`)
		default:
			switch r.Method {
			case "initialize":
				answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
			case "tools/list":
				answer(`{"tools":[{"name":"ok","inputSchema":{"type":"object"}}]}`)
			case "tools/call":
				answer(`{"content":[]}`)
			}
		}
	}
}

var badTools = []string{
	`null`, `7`, `{"name":"","inputSchema":{"type":"object"}}`, `{"name":"a b","inputSchema":{"type":"object"}}`, `{"name":"../x","inputSchema":{"type":"object"}}`,
	`{"name":"` + strings.Repeat("n", 65) + `","inputSchema":{"type":"object"}}`, `{"name":"none"}`, `{"name":"string","inputSchema":{"type":"string"}}`,
	`{"name":"away","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.org/s"}}}}`,
	`{"name":"large","inputSchema":{"type":"object","description":"` + strings.Repeat("d", MaxSchema) + `"}}`,
	`{"name":"deep","inputSchema":{"type":"object","not":` + strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat("}", 40) + `}}`,
	`{"name":"good","description":"` + strings.Repeat("d", 2*MaxDescription) + `","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}},"outputSchema":{"type":"object","properties":{"a":{"$ref":"#"}}}}`,
	`{"name":"good","inputSchema":{"type":"object"}}`,
}
