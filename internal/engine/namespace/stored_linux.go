package namespace

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// storedPromises are the promises of the settings of a container.
var storedPromises = map[string]string{
	"Process": "B12", "Root": "B3", "Mounts": "B7", "Files": "B23", "Network": "B20", "Sysctls": "B22", "Limits": "B5", "Rlimits": "B5",
	"Capabilities": "B1", "Seccomp": "B2", "Landlock": "B3", "OOMScore": "B5", "Restart": "B29", "Log": "B5", "Ports": "B10", "ImageID": "B46",
}

// checkStored compares what the supervisor has of a container with what it was sent by
// this run. A container that differs is removed, and the error is an
// [engine.RefusedError]. One list of the supervisor serves all that it has: it never
// changes one.
func (r *run) checkStored(ctx context.Context, sv *client.Client, service string) error {
	r.checking.Lock()
	defer r.checking.Unlock()
	if sent := r.sentAs(service); sent == nil || r.checked[service] == sent {
		return nil
	}
	all, err := sv.List(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		c := &all[i].Container
		sent := r.sentAs(c.Service)
		if sent == nil || r.checked[c.Service] == sent {
			continue
		}
		differences, err := stored(sent, c)
		switch {
		case err != nil:
			return err
		case len(differences) == 0:
			r.checked[c.Service] = sent
		case c.Service == service: // any other one is refused at its own start
			if err := ignoreGone(sv.Remove(ctx, service)); err != nil {
				return err
			}
			return engine.RefuseDifferences("container "+c.Name, differences, "run `workshop down`, then `workshop up`")
		}
	}
	return nil // if it isn't in the list, the start says that it is gone
}

// sentAs is the container of a service that this run sent; nil: none.
func (r *run) sentAs(service string) *spec.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[service]
}

// stored compares every field. sent was never JSON, which has no empty lists.
func stored(sent, found *spec.Container) (out []engine.Difference, err error) {
	var read spec.Container
	text, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	if same, err := json.Marshal(found); err != nil || bytes.Equal(same, text) {
		return nil, err
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	asked, seen := reflect.ValueOf(read), reflect.ValueOf(*found)
	for i, f := range reflect.VisibleFields(asked.Type()) {
		if reflect.DeepEqual(asked.Field(i).Interface(), seen.Field(i).Interface()) {
			continue
		}
		out = append(out, engine.Difference{Promise: storedPromises[f.Name], Field: f.Name, Asked: shown(f.Name, asked.Field(i)), Found: shown(f.Name, seen.Field(i))})
	}
	return out, nil
}

// shown is a setting as JSON. The environment of a process may be secret.
func shown(field string, v reflect.Value) string {
	if p, ok := v.Interface().(spec.Process); ok {
		p.Env = nil
		v = reflect.ValueOf(p)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return field
	}
	return string(text)
}
