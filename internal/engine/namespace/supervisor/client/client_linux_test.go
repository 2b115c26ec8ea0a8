package client

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
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

// TestCreate: what a supervisor says that it has is what it was sent.
func TestCreate(t *testing.T) {
	c := &spec.Container{Version: spec.Version, Service: "one", Limits: spec.Limits{Memory: 1 << 20}}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, stored string
		same         bool
	}{
		{"the same", string(text), true},
		{"another limit", strings.Replace(string(text), "1048576", "1048577", 1), false},
		{"nothing", "", false}, // nor a sum, as of a supervisor of an older build
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.Listen("unix", dir+"/"+api.SocketName)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			sum, list := sha256.Sum256([]byte(tt.stored)), make([]api.Seen, 1)
			answers := []api.Answer{{Sum: sum[:]}, {List: list}}
			if tt.stored == "" {
				answers = make([]api.Answer, 2)
			} else if err := json.Unmarshal([]byte(tt.stored), &list[0].Container); err != nil {
				t.Fatal(err)
			}
			requests := make(chan string, 2)
			go func() {
				for _, a := range answers {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					request, _ := bufio.NewReader(conn).ReadString('\n')
					requests <- request
					_ = json.NewEncoder(conn).Encode(a)
					conn.Close()
				}
			}()
			err = (&Client{dir: dir}).Create(t.Context(), c)
			other, differs := errors.AsType[*StoredError](err)
			if differs == tt.same || !differs && err != nil || differs && (string(other.Stored) != tt.stored || string(other.Sent) != string(text)) {
				t.Errorf("%v: %+v", err, other)
			}
			if got, want := <-requests, `{"op":"create","container":`+string(text)+"}\n"; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		})
	}
}
