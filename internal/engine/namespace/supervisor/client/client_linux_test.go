package client

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// Whoever a state directory belongs to says what is in it: another user's
// socket isn't a supervisor's.
func TestAnotherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's directory")
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", dir+"/"+api.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := os.Chown(dir, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	if c, err := Connect(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "another user's") {
		t.Errorf("%v, %v", c, err)
	}
}
