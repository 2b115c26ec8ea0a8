package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/llmdo/workshop/client"
)

// A workshop is opened, a worker's tool is called, and its result is read.
func Example() {
	ctx := context.Background()
	w, err := client.Open(ctx, client.Options{Up: true, Log: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	result, err := w.Call(ctx, "reviewer", "search_files", map[string]any{"pattern": "TODO"})
	if err != nil {
		log.Fatal(err)
	}
	var found struct {
		Matches []struct {
			Path string
			Line int
			Text string
		}
	}
	if err := result.Decode(&found); err != nil {
		log.Fatal(err)
	}
	for _, m := range found.Matches {
		fmt.Printf("%s:%d: %s\n", m.Path, m.Line, m.Text)
	}
}

// Options.Approve is asked about the calls that need a yes.
func Example_approve() {
	ctx := context.Background()
	w, err := client.Open(ctx, client.Options{
		Approve: func(_ context.Context, c client.Call) (client.Answer, error) {
			if c.Worker == "builder" && c.Tool == "write_file" {
				return client.Session, nil // this one, and those that the same rule covers
			}
			return client.Refuse, nil
		},
	})
	if no, ok := errors.AsType[*client.InvalidError](err); ok {
		for _, d := range no.Diagnostics {
			fmt.Println(d)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	_, err = w.Call(ctx, "builder", "shell", map[string]any{"argv": []string{"make"}})
	if no, ok := errors.AsType[*client.RefusedError](err); ok {
		fmt.Println("not run:", no.Why)
	}
}

// Tools and workers are what an orchestrator hands to its model.
func ExampleWorkshop_Tools() {
	ctx := context.Background()
	w, err := client.Open(ctx, client.Options{Dir: "examples/code-review", Up: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	for _, k := range w.Workers() {
		tools, err := w.Tools(ctx, k.Name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(k.Name, k.Instructions)
		for _, t := range tools {
			fmt.Println(t.Name, string(t.InputSchema))
		}
	}
}
