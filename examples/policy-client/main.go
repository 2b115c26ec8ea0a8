// Command policy-client shows and changes what the workers of a running workshop may
// reach, from Go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/llmdo/workshop/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := "examples/policy-client"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(ctx, dir); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	w, err := client.Open(ctx, client.Options{
		Dir: dir, Up: true, Log: os.Stderr,
		Approve: func(context.Context, client.Call) (client.Answer, error) { return client.Once, nil },
	})
	if err != nil {
		return err
	}
	defer w.Close()

	// What the file says.
	p, err := w.Policy(ctx)
	if err != nil {
		return err
	}
	for _, r := range p.Rooms {
		for _, l := range r.Allow {
			fmt.Printf("%v (%v): allow %s %s, %s\n", r.Workers, r.Mode, l.Target, l.Ports, l.Source)
		}
	}

	// A worker asks for another host, and the guard's events say what would allow it.
	if _, err := w.Call(ctx, "builder", "shell", map[string]any{"argv": []string{"getent", "hosts", "api.example.org"}}); err != nil {
		return err
	}
	if _, err := w.Policy(ctx); err != nil { // what waits to be joined with equal events is written
		return err
	}
	wanted := map[string]bool{}
	err = w.Events(ctx, client.EventOptions{Denied: true}, func(e client.Event) error {
		if e.Name != "" && e.Suggest != "" {
			wanted[e.Suggest] = true
		}
		return nil
	})
	if err != nil {
		return err
	}

	// Each is allowed for ten minutes; no worker is restarted.
	for host := range wanted {
		c, err := w.Allow(ctx, []string{host}, client.ChangeOptions{For: 10 * time.Minute})
		if err != nil {
			return err
		}
		fmt.Println("allowed", c.Lines, "for", c.Workers)
	}
	c, err := w.Deny(ctx, []string{"example.com"}, client.ChangeOptions{Worker: "builder"})
	if err != nil {
		return err
	}
	fmt.Println("denied", c.Lines, "for", c.Workers)
	if p, err = w.Policy(ctx); err != nil {
		return err
	}
	fmt.Println(len(p.Running.Live), "live changes")

	// The file alone counts again.
	done, err := w.Reload(ctx, true)
	if err != nil {
		return err
	}
	fmt.Println(done.Dropped, "dropped")
	return nil
}
