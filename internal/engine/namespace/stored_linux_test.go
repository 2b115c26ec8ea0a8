package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// What the supervisor has otherwise than it was sent is found by its field and promise.
func TestStored(t *testing.T) {
	sent := &spec.Container{
		Version: 1, Name: "p-one-1", Service: "one", Role: spec.Worker, Labels: map[string]string{"a": "b"}, Mounts: []spec.Mount{},
		Process: spec.Process{Args: []string{"/x"}, Env: []string{"TOKEN=secret"}}, Limits: spec.Limits{Memory: 1 << 20, PIDs: 64, CPUs: 0.5}, Seccomp: []byte{1},
	}
	for _, c := range []struct {
		name   string
		change func(*spec.Container)
		want   []engine.Difference
	}{
		{"nothing", func(*spec.Container) {}, nil},
		{"seccomp", func(c *spec.Container) { c.Seccomp = nil }, []engine.Difference{{Promise: "B2", Field: "Seccomp", Asked: `"AQ=="`, Found: "null"}}},
		{"capabilities", func(c *spec.Container) { c.Capabilities = []string{"CAP_NET_RAW"} }, []engine.Difference{{Promise: "B1", Field: "Capabilities", Asked: "null", Found: `["CAP_NET_RAW"]`}}},
		{"network", func(c *spec.Container) { c.Network.Mode = spec.NetHost }, []engine.Difference{{Promise: "B20", Field: "Network", Asked: `{"mode":""}`, Found: `{"mode":"host"}`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			var found spec.Container
			if err := json.Unmarshal(text, &found); err != nil {
				t.Fatal(err)
			}
			c.change(&found)
			got, err := stored(sent, &found)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v\n-want +got:\n%s", err, diff)
			}
		})
	}
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[spec.Container]()) {
		fields[f.Name] = true
	}
	for name := range storedPromises {
		if !fields[name] {
			t.Errorf("%s is not a field", name)
		}
	}
	got, err := stored(sent, &spec.Container{Process: spec.Process{Env: []string{"TOKEN=secret2"}}})
	if len(got) == 0 || err != nil || strings.Contains(fmt.Sprint(got), "secret") {
		t.Errorf("values of the environment are shown: %v, %v", got, err)
	}
}

// A container that the supervisor has otherwise is removed, and not started.
func TestRealStored(t *testing.T) {
	f := newFixture(t, nil, "one")
	p := f.plan(t)
	p.Steps = slices.DeleteFunc(p.Steps, func(s engine.Step) bool {
		return s.Op == engine.OpStartContainer || s.Op == engine.OpWaitReady
	})
	for i := range p.Steps {
		p.Steps[i].After = slices.DeleteFunc(p.Steps[i].After, func(id int) bool {
			return !slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.ID == id })
		})
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	sent, err := f.e.one(t.Context(), f.name, "room", "")
	if err != nil {
		t.Fatal(err)
	}
	k := sent.Container
	one, err := f.e.one(t.Context(), f.name, "one", "")
	if err != nil {
		t.Fatal(err)
	}
	same := one.Container
	k.Limits.Memory++
	r := &run{e: f.e, p: f.plan(t), ids: map[string]string{}, sent: map[string]*spec.Container{"room": &k, "one": &same}, checked: map[string]*spec.Container{}}
	sv, err := r.supervisor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.checkStored(t.Context(), sv, "one"); err != nil || r.checked["one"] != &same || r.checked["room"] != nil {
		t.Errorf("err = %v, checked %v", err, r.checked)
	}
	err = r.start(t.Context(), engine.Step{Op: engine.OpStartContainer, Service: "room"})
	if refused, ok := errors.AsType[*engine.RefusedError](err); !ok || refused.Promise != "B5" {
		t.Errorf("err = %v", err)
	}
	if _, err := f.e.one(t.Context(), f.name, "room", ""); err == nil {
		t.Error("the container is still there")
	}
	other := same
	other.Limits.Memory++
	r.sent["one"] = &other // created again
	if err := r.checkStored(t.Context(), sv, "one"); err == nil {
		t.Error("one that was created again is not compared")
	}
}
