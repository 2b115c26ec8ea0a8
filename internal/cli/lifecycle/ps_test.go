package lifecycle

import (
	"bytes"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/guard/control"
)

// What goes through an upstream is in ps in words, a line each.
func TestUpstreamsShown(t *testing.T) {
	s := control.State{Upstreams: []control.Upstream{{Kind: "resolver", Address: "198.51.100.53:53"}, {Kind: "proxy", Address: "198.51.100.80:3128"}}}
	var err bytes.Buffer
	a := verbs{command.NewProgram(&command.System{Env: &app.Env{}, Err: &err})}
	a.psLive(&app.Status{Guard: &s})
	if want := "upstream resolver: names are looked up at 198.51.100.53:53\nupstream proxy: every connection goes through 198.51.100.80:3128\n"; err.String() != want {
		t.Errorf("%q", err.String())
	}
}

// Workers of a closed room have no network, whatever the file says; the others do.
func TestClosedRooms(t *testing.T) {
	for closed, want := range map[string]string{"": "restricted", "nobody knows": "restricted, closed"} {
		if got := networkColumn(app.ContainerStatus{Network: "restricted", Closed: closed}); got != want {
			t.Errorf("closed %q: got %q, want %q", closed, got, want)
		}
	}
}
