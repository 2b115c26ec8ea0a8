package docker

import (
	"errors"
	"strings"
	"testing"
)

// As Docker Engine 20.10 and 28 say it (libnetwork, docker-proxy).
func TestMentionsPort(t *testing.T) {
	for text, want := range map[string]bool{
		"Bind for 127.0.0.1:8080 failed: port is already allocated":                                    true,
		"Error starting userland proxy: listen tcp4 127.0.0.1:8080: bind: address already in use":      true,
		"failed to bind host port 127.0.0.1:8080/tcp: address already in use":                          true,
		"failed to bind host port for 127.0.0.1:8080:172.18.0.2:20000/tcp: address already in use":     true,
		"Bind for 127.0.0.1:80801 failed: port is already allocated":                                   false,
		"listen tcp4 127.0.0.1:80801: bind: address already in use, and so is 127.0.0.1:8080 as it is": true,
		"listen unix /run/x.sock: bind: address already in use":                                        false,
	} {
		if got := mentionsPort(text, "8080"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// What gVisor says when a source can't be mounted is explained.
func TestStartOnGVisor(t *testing.T) {
	said := errors.New("cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF")
	if err := (&run{}).startError("worker", said); !errors.Is(err, said) || !strings.Contains(err.Error(), "findmnt") {
		t.Error(err)
	}
}
