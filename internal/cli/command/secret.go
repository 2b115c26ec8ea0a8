package command

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// AskSecret reads one line that isn't shown: a person's at the terminal, else that of the
// standard input, of which most bytes at most are taken. It is not kept anywhere.
func (a *Program) AskSecret(most int64) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, question string) ([]byte, error) {
		if a.interactive() {
			fmt.Fprint(a.Err, textwrap.Lines(question+" (it isn't shown):", a.Columns(a.Err), 2)+" ")
			line, err := terminal.ReadSecret(ctx, a.In)
			fmt.Fprintln(a.Err)
			return line, err
		}
		type result struct {
			line []byte
			err  error
		}
		read := make(chan result, 1)
		go func() {
			line, err := bufio.NewReader(io.LimitReader(a.In, most)).ReadBytes('\n')
			if err == io.EOF {
				err = nil
			}
			read <- result{line, err}
		}()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case r := <-read:
			return r.line, r.err
		}
	}
}
