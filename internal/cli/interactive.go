package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// interactive tells whether a person can be asked.
func (a *program) interactive() bool { return isTerminal(a.In) && isTerminal(a.Err) }

// ask puts a yes-or-no question on the terminal; anything but a yes is a no.
func (a *program) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return false, context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	}
}
