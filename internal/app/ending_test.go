package app

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// TestEndingLines: what ends is counted and named, and nothing else.
func TestEndingLines(t *testing.T) {
	live := func(host string, deny bool) firewall.Live {
		h, err := firewall.ParseHostPattern(host)
		if err != nil {
			t.Fatal(err)
		}
		return firewall.Live{Deny: deny, Rule: firewall.Rule{Host: h, Ports: []firewall.PortRange{{First: 22, Last: 22}}}}
	}
	a, b, c, d := live("a.example", false), live("b.example", false), live("c.example", true), live("d.example", true)
	for _, tt := range []struct {
		name          string
		state         *control.State
		guard, denies bool
		want          []string
	}{
		{"no answer", nil, true, false, nil},
		{"no answer, and no network", nil, true, true, []string{"live denies are dropped if there are any, because no worker has a network any more"}},
		{"nothing live", &control.State{}, true, true, nil},
		{"stored", &control.State{Stored: true, Live: []firewall.Live{a, c}}, true, false, []string{"1 live allow ends with the guard: a.example:22"}},
		{"more", &control.State{Stored: true, Live: []firewall.Live{a, c, b}}, true, false, []string{"2 live allows end with the guard: a.example:22, b.example:22"}},
		{"not stored", &control.State{Live: []firewall.Live{c}}, true, false, []string{"1 live deny is dropped, because the guard could not store what is denied: c.example:22"}},
		{"no network", &control.State{Stored: true, Live: []firewall.Live{c, d}}, true, true, []string{"2 live denies are dropped, because no worker has a network any more: c.example:22, d.example:22"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := endingLines(tt.state, tt.guard, tt.denies); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A guard of a busy machine is waited for, since what ends can't be asked afterwards.
func TestSayEndingOfASlowGuard(t *testing.T) {
	server := control.NewServer(func(context.Context, control.Request) (any, error) {
		host, err := firewall.ParseHostPattern("c.example")
		return control.State{Stored: true, Live: []firewall.Live{{Deny: true, Rule: firewall.Rule{Host: host, Ports: []firewall.PortRange{{First: 22, Last: 22}}}}}}, err
	})
	var said []string
	env := &Env{Events: func(e Event) { said = append(said, e.Text) }}
	r := &Running{env: env, Engine: slowGuard{wait: AskTime + 200*time.Millisecond, server: server}}
	env.SayEnding(t.Context(), r, &engine.Plan{
		Steps:    []engine.Step{{Op: engine.OpRemoveVolume, ObjectID: "v"}},
		Observed: engine.Observed{Volumes: []engine.Object{{Name: "v", Labels: map[string]string{engine.LabelVolume: compose.SocketsVolume}}}},
	})
	if want := []string{"1 live deny is dropped, because no worker has a network any more: c.example:22"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// slowGuard is an engine, of which only the way to the guard is used.
type slowGuard struct {
	engine.Engine
	wait   time.Duration
	server *control.Server
}

func (s slowGuard) Control(ctx context.Context, _, _ string) (io.ReadWriteCloser, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.wait):
	}
	host, guard := net.Pipe()
	go s.server.Serve(ctx, guard)
	return host, nil
}
