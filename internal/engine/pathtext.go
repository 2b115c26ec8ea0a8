package engine

import (
	"fmt"
	"unicode/utf8"
)

// CheckPath refuses a path that isn't UTF-8. Requests to engines and descriptions of
// containers are JSON, where invalid bytes become U+FFFD, which is another path
// (B7). Every path that is mounted, built or opened for a worker is checked here.
func CheckPath(what, path string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return &RefusedError{
		Promise: "B7", Reason: fmt.Sprintf("%s, %q, is not UTF-8, and the engine would get another path", what, path),
		Do: "rename the directory",
	}
}
