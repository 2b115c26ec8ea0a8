// Command client uses a workshop from Go: it starts it, reads a file by a
// worker's tool, and shows what a worker isn't offered.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/llmdo/workshop/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := "examples/hello"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := greet(ctx, dir); err != nil {
		log.Fatal(err)
	}
}

func greet(ctx context.Context, dir string) error {
	w, err := client.Open(ctx, client.Options{
		Dir: dir,
		Up:  true, // start what isn't up
		Log: os.Stderr,
		// What the workshop's approvals ask about comes here.
		Approve: func(_ context.Context, c client.Call) (client.Answer, error) {
			fmt.Fprintln(os.Stderr, "refused:", c.Text)
			return client.Refuse, nil
		},
	})
	if err != nil {
		return err
	}
	defer w.Close()

	for _, k := range w.Workers() {
		fmt.Printf("%s: %s\n", k.Name, k.Description)
	}

	result, err := w.Call(ctx, "greeter", "read_file", map[string]any{"path": "/workspace/greetings/hello.txt"})
	if err != nil {
		return err
	}
	if result.Failed {
		return errors.New(result.Text)
	}
	var file struct {
		Content string `json:"content"`
		Size    int64  `json:"size"`
	}
	if err := result.Decode(&file); err != nil {
		return err
	}
	fmt.Printf("%d bytes: %s", file.Size, file.Content)

	_, err = w.Call(ctx, "greeter", "shell", map[string]any{"argv": []string{"true"}})
	if no, ok := errors.AsType[*client.NotOfferedError](err); ok {
		fmt.Println("no shell; it has", no.Offered)
	}
	return nil
}
