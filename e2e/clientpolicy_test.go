//go:build linux

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/client"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/firewall"
)

// What a Go program does with the policy of a running workshop: it counts for workers at
// once, and each thing that goes wrong is an error that changes nothing.
func TestClientPolicy(t *testing.T) {
	scenario.NotRootless(t, "the client is this process, which is root")
	s := scenario.New(t, "restricted", "a Go program shows and changes what workers may reach, and hears what was refused")
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	for _, e := range append(s.Program(t.Context(), "").Env, "WORKSHOP_FILE=", "WORKSHOP_PROJECT_NAME=") {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	s.Up()
	ctx := t.Context()
	w := open(t, client.Options{Dir: s.Dir, Project: s.Project})
	p, err := w.Policy(ctx)
	if err != nil || len(p.Rooms) != 1 || p.Rooms[0].Mode != firewall.Restricted || p.Rooms[0].Allow[0].Target != "allowed.example.org" ||
		p.Rooms[0].Deny[0].Target != "gist.allowed.example.org" || p.Project != s.Project || p.Running == nil || !p.Running.Current {
		t.Fatalf("%+v %v", p, err)
	}

	// Events that come, as they come.
	following, stop := context.WithCancelCause(ctx)
	heard, ended := make(chan client.Event, 100), make(chan error, 1)
	go func() {
		ended <- w.Events(following, client.EventOptions{Denied: true, Follow: true, Worker: "worker"}, func(e client.Event) error { heard <- e; return nil })
	}()

	const other = "http https://denied.example.org/ ca=/ca.pem -> "
	s.Sees("worker", other+"NXDOMAIN")
	select {
	case e := <-heard:
		if e.Name != "denied.example.org" || e.Verdict != "deny" || e.Reason != firewall.ReasonName || e.Suggest == "" || e.Why == "" || len(e.Workers) != 1 {
			t.Errorf("event %+v", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("no event of what was refused")
	}
	c, err := w.Allow(ctx, []string{"denied.example.org:443"}, client.ChangeOptions{Worker: "worker", For: time.Hour})
	if err != nil || len(c.Lines) != 1 || c.Until.Before(time.Now().Add(50*time.Minute)) || len(c.Workers) != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	s.Sees("worker", other+"200")
	if c, err := w.Allow(ctx, []string{"allowed.example.org"}, client.ChangeOptions{}); err != nil || len(c.Lines) != 0 {
		t.Errorf("what is so already: %+v %v", c, err)
	}
	if c, err := w.Deny(ctx, []string{"denied.example.org", "allowed.example.org"}, client.ChangeOptions{}); err != nil || len(c.Lines) != 2 {
		t.Errorf("%+v %v", c, err)
	}
	s.Sees("worker", other+"NXDOMAIN")
	if p, err = w.Policy(ctx); err != nil || len(p.Running.Live) < 2 || !p.Running.Current {
		t.Errorf("%+v %v", p, err)
	}

	// What can't be changes nothing.
	for name, try := range map[string]func() error{
		"not a host": func() error { _, err := w.Allow(ctx, []string{"a b"}, client.ChangeOptions{}); return err },
		"no host":    func() error { _, err := w.Deny(ctx, nil, client.ChangeOptions{}); return err },
		"never open": func() error { _, err := w.Allow(ctx, []string{"169.254.169.254"}, client.ChangeOptions{}); return err },
		"no such worker": func() error {
			_, err := w.Allow(ctx, []string{"x.example.org"}, client.ChangeOptions{Worker: "nobody"})
			return err
		},
		"denied by file": func() error {
			_, err := w.Allow(ctx, []string{"gist.allowed.example.org"}, client.ChangeOptions{})
			return err
		},
		"events of nobody": func() error { return w.Events(ctx, client.EventOptions{Worker: "nobody"}, nil) },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	before, err := w.Policy(ctx)
	if err != nil || len(before.Running.Live) != len(p.Running.Live) {
		t.Errorf("errors changed something: %+v %v", before.Running, err)
	}

	// The file: a line more, then one that is wrong.
	edit(s, "- allowed.example.org\n", "- allowed.example.org\n        - evil.example.net\n")
	if p, err = w.Policy(ctx); err != nil || p.Running.Current {
		t.Errorf("the file changed: %+v %v", p.Running, err)
	}
	done, err := w.Reload(ctx, true)
	if err != nil || !done.Replaced || done.Dropped != len(before.Running.Live) || done.Generation <= before.Running.Generation {
		t.Errorf("%+v %v", done, err)
	}
	s.Sees("worker", "http http://evil.example.net/ -> 200", other+"NXDOMAIN", "http http://allowed.example.org/ -> 200")
	edit(s, "- evil.example.net\n", "- evil example\n")
	if _, err := w.Reload(ctx, false); !is[*client.InvalidError](err) {
		t.Errorf("an invalid file: %T %v", err, err)
	}
	if _, err := w.Policy(ctx); !is[*client.InvalidError](err) {
		t.Errorf("an invalid file: %T %v", err, err)
	}
	s.Sees("worker", "http http://evil.example.net/ -> 200")

	cause := errors.New("enough")
	stop(cause)
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("the end of the context: %v", err)
	}
	if err := w.Events(ctx, client.EventOptions{}, func(client.Event) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("the function's error: %v", err)
	}
	edit(s, "- evil example\n", "- evil.example.net\n")
	s.Expect(0, "down")
	if p, err := w.Policy(ctx); err != nil || p.Running != nil {
		t.Errorf("down: %+v %v", p, err)
	}
	if _, err := w.Deny(ctx, []string{"evil.example.net"}, client.ChangeOptions{}); !is[*client.NotUpError](err) {
		t.Errorf("down: %T %v", err, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Policy(ctx); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
