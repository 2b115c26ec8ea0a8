package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// storedPromises are the promises of the settings of a container.
var storedPromises = map[string]string{
	"Process": "B12", "Root": "B3", "Mounts": "B7", "Files": "B23", "Devices": "B6", "Network": "B20", "Sysctls": "B22", "Limits": "B5", "Rlimits": "B5",
	"Capabilities": "B1", "Seccomp": "B2", "Landlock": "B3", "OOMScore": "B5", "Restart": "B29", "Log": "B5", "Ports": "B10", "ImageID": "B46",
}

// refuseStored removes a container in which the supervisor has any setting otherwise than this
// run sent it, and returns an [engine.RefusedError].
func refuseStored(ctx context.Context, sv *client.Client, c *spec.Container, e *client.StoredError) error {
	differences, err := stored(e)
	if err == nil {
		err = engine.RefuseDifferences("container "+c.Name, differences, "run `workshop down`, then `workshop up`")
	}
	if err == nil { // the same in the words of another build
		return nil
	}
	return errors.Join(err, ignoreGone(sv.Remove(ctx, c.Service)))
}

// stored compares every field.
func stored(e *client.StoredError) (out []engine.Difference, err error) {
	var sent, has spec.Container
	if err := json.Unmarshal(e.Sent, &sent); err != nil {
		return nil, err
	}
	if len(e.Stored) > 0 {
		if err := json.Unmarshal(e.Stored, &has); err != nil {
			return nil, err
		}
	}
	asked, found := reflect.ValueOf(sent), reflect.ValueOf(has)
	for i, f := range reflect.VisibleFields(asked.Type()) {
		if reflect.DeepEqual(asked.Field(i).Interface(), found.Field(i).Interface()) {
			continue
		}
		out = append(out, engine.Difference{Promise: storedPromises[f.Name], Field: f.Name, Asked: shown(f.Name, asked.Field(i)), Found: shown(f.Name, found.Field(i))})
	}
	return out, nil
}

// shown is a setting as JSON. The environment of a process may be secret, and a file have it.
func shown(field string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case spec.Process:
		x.Env = nil
		v = reflect.ValueOf(x)
	case []spec.File:
		x = slices.Clone(x)
		for i := range x {
			if x[i].Path == machineFile {
				x[i].Data = ""
			}
		}
		v = reflect.ValueOf(x)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return field
	}
	return string(text)
}
