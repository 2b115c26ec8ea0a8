package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// allow compiles the workshop again, with one more name that is allowed.
func (f *fixture) allow(t *testing.T, name string) {
	t.Helper()
	host, err := firewall.ParseHostPattern(name)
	if err != nil {
		t.Fatal(err)
	}
	f.compile(t, func(w *workshop.Workshop) {
		w.Container.Network.Allow = append(w.Container.Network.Allow, firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts()})
		w.Workers[0].Container.Network = w.Container.Network
	}, "one")
}

// here tells the engine whether it may read volumes on this machine.
func (f *fixture) here(t *testing.T, local bool) {
	t.Helper()
	i, err := f.e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.Local = i.Local && local
	f.e.info = func(context.Context) (engine.Info, error) { return i, nil }
}

func TestPolicyChangeIsGivenToTheRunningGuard(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	before := map[string]string{}
	for _, s := range []string{"one", "room", "guard"} {
		i := f.inspect(t, s)
		before[s] = i.ID + i.State.StartedAt
	}
	for _, name := range []string{"new.example.org", "once.example.org"} {
		f.allow(t, name)
		p := f.plan(t)
		if only, more := engine.OnlyReload(p); !only || p.Empty() {
			t.Fatalf("more than a reload: %v\n%s", more, p)
		}
		detail := ""
		err := f.e.Apply(t.Context(), p, func(e engine.Event) {
			if e.Step.Op == engine.OpReloadPolicy && e.Status == engine.StepProgress {
				detail = e.Detail
			}
		})
		if want := map[string]string{"new.example.org": "3 connections ended", "once.example.org": "6 connections ended"}[name]; err != nil || detail != want {
			t.Errorf("%s: %v, %q", name, err, detail)
		}
		for s, was := range before {
			if i := f.inspect(t, s); i.ID+i.State.StartedAt != was {
				t.Errorf("%s: %s was made anew or restarted", name, s)
			}
		}
		// Both ways of reading the digest: on this machine, and through the engine.
		for _, local := range []bool{true, false} {
			f.here(t, local)
			if o := f.observe(t); o.PolicyDigest != firewall.Digest(f.c.Policy) {
				t.Errorf("%s, here %v: digest %q", name, local, o.PolicyDigest)
			}
			if again := f.plan(t); !again.Empty() {
				t.Errorf("%s, here %v: again:\n%s", name, local, again)
			}
		}
	}
}

// The digest is read for plans alone, of guards that run and that don't.
func TestPolicyDigestIsReadForPlans(t *testing.T) {
	f := newFixture(t, nil, "one")
	if o := f.observe(t); o.PolicyDigest != "" {
		t.Errorf("nothing is there, and its digest is %q", o.PolicyDigest)
	}
	f.up(t)
	o, err := f.e.Observe(t.Context(), f.name)
	if err != nil || o.PolicyDigest != "" {
		t.Errorf("without images: %q, %v", o.PolicyDigest, err)
	}
	if err := f.e.cli.ContainerStop(t.Context(), f.container(t, "guard").ID, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, local := range []bool{true, false} {
		f.here(t, local)
		if o := f.observe(t); o.PolicyDigest != firewall.Digest(f.c.Policy) {
			t.Errorf("stopped, here %v: digest %q", local, o.PolicyDigest)
		}
	}
}

func TestStoppedGuardStartsWithTheNewPolicy(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	guard := f.container(t, "guard").ID
	if err := f.e.cli.ContainerStop(t.Context(), guard, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	f.allow(t, "new.example.org")
	f.up(t)
	if f.container(t, "guard").ID != guard || f.observe(t).PolicyDigest != firewall.Digest(f.c.Policy) {
		t.Error("the guard was made anew, or has the old policy")
	}
}

// What goes wrong is said with what to do, and leaves in the volume the policy
// that the guard has.
func TestReloadThatFails(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	for _, c := range []struct{ name, says string }{
		{"refused.example.org", "this one I don't take; run `workshop up` again"},
		{"never.example.org", "has another one"},
		{"half.example.org", "the change holds, but not everywhere; run `workshop up` again"},
		{"silence.example.org", "the guard doesn't answer after 2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := f.observe(t).PolicyDigest
			f.allow(t, c.name)
			p := f.plan(t)
			switch c.name {
			case "silence.example.org":
				p.ReloadTimeout = 2 * time.Second
			case "half.example.org":
				want = firewall.Digest(f.c.Policy)
			}
			err := f.e.Apply(t.Context(), p, nil)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v", err)
			}
			var silent *engine.SilentGuardError
			if errors.As(err, &silent) != (c.name == "silence.example.org") {
				t.Errorf("silent: %v", err)
			}
			if c.name != "never.example.org" && f.observe(t).PolicyDigest != want {
				t.Error("the volume has a policy that the guard hasn't")
			}
		})
	}
}
