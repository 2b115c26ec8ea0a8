package engine

import (
	"fmt"
	"unicode/utf8"
)

// CheckPath refuses a path that an engine can't be told. Its request, or the
// description of a container, is JSON: what isn't UTF-8 becomes U+FFFD there, which
// is the path of something else (B7). Nothing is mounted, built or opened for a
// worker by a path that has not been through here.
func CheckPath(what, path string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return &RefusedError{
		Promise: "B7", Reason: fmt.Sprintf("%s, %q, is a path that is not UTF-8, and the engine would be told another one", what, path),
		Do: "rename the directory that has such a name",
	}
}
