package files

import "context"

// changing lets one call change files at a time: of two edits of one file that
// run at once, none is lost.
var changing = make(chan struct{}, 1)

func lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case changing <- struct{}{}:
		return func() { <-changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
