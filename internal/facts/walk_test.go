package facts

import (
	"os"
	"strconv"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// A directory that nobody may read, but whose owner is the worker's user, is
// one chmod away from being read by the worker (B7, B8).
func TestClosedDirectories(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	uid, _, known := fileowner.Of(info)
	testutil.Require(t, known, "this system tells no owners")
	for _, tt := range []struct {
		name   string
		caller int
		user   string
		write  bool
		want   bool
	}{
		{"another user's worker", 1234, "4321:1", false, false},
		{"the caller's worker, read-only", 1234, "1234:1", false, true},
		{"the caller's worker, writable, somebody else's directory", uid + 1, strconv.Itoa(uid+1) + ":1", true, true},
		{"the caller's worker, writable, its own directory", uid, strconv.Itoa(uid) + ":1", true, uid == 0},
	} {
		c := collector{o: &Options{UID: tt.caller}, users: map[string]string{"w": tt.user}}
		if got := c.closed(&use{readWrite: tt.write}, dir); got != tt.want {
			t.Errorf("%s: closed = %v, want %v", tt.name, got, tt.want)
		}
	}
}
