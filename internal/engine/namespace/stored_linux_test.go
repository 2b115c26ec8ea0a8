package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
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
			has, err := json.Marshal(&found)
			if err != nil {
				t.Fatal(err)
			}
			got, err := stored(&client.StoredError{Sent: text, Stored: has})
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
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stored(&client.StoredError{Sent: text, Stored: []byte(`{"process":{"env":["TOKEN=secret2"]}}`)})
	if len(got) == 0 || err != nil || strings.Contains(fmt.Sprint(got), "secret") {
		t.Errorf("values of the environment are shown: %v, %v", got, err)
	}
	if got, err := stored(&client.StoredError{Sent: text}); len(got) < 5 || err != nil {
		t.Errorf("a supervisor that says nothing: %v, %v", got, err)
	}
}

// A container that the supervisor has otherwise is removed.
func TestRealStored(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	one, err := f.e.one(t.Context(), f.name, "one", "")
	if err != nil {
		t.Fatal(err)
	}
	sv, err := f.e.find(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	is := one.Container
	has, err := json.Marshal(&is)
	if err != nil {
		t.Fatal(err)
	}
	if err := refuseStored(t.Context(), sv, &is, &client.StoredError{Sent: append(has, ' '), Stored: has}); err != nil {
		t.Errorf("the same in other words: %v", err)
	}
	if _, err := f.e.one(t.Context(), f.name, "one", ""); err != nil {
		t.Errorf("the same in other words: %v", err)
	}
	is.Limits.Memory++
	sent, err := json.Marshal(&is)
	if err != nil {
		t.Fatal(err)
	}
	err = refuseStored(t.Context(), sv, &is, &client.StoredError{Sent: sent, Stored: has})
	if refused, ok := errors.AsType[*engine.RefusedError](err); !ok || refused.Promise != "B5" {
		t.Errorf("err = %v", err)
	}
	if _, err := f.e.one(t.Context(), f.name, "one", ""); err == nil {
		t.Error("the container is still there")
	}
}
