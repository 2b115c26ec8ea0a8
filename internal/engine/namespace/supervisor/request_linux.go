package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// takes lists the required fields of each operation besides op; others are refused.
var takes = map[string]struct{ service, container, signal bool }{
	api.OpHello: {}, api.OpList: {}, api.OpShutdown: {},
	api.OpCreate: {container: true},
	api.OpStart:  {service: true}, api.OpReady: {service: true}, api.OpWait: {service: true}, api.OpStop: {service: true}, api.OpRemove: {service: true}, api.OpPid: {service: true},
	api.OpSignal:  {service: true, signal: true},
	api.OpControl: {}, // service is optional
}

// decode parses the request of a line.
func decode(line []byte) (*api.Request, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var r api.Request
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("invalid request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid request: trailing data after the request")
	}
	want, ok := takes[r.Op]
	if !ok {
		return nil, fmt.Errorf("unknown operation %q", clip.Bytes(r.Op, maxText))
	}
	for _, f := range []struct {
		name      string
		want, has bool
	}{
		{"service", want.service, r.Service != ""}, {"container", want.container, r.Container != nil}, {"signal", want.signal, r.Signal != ""},
	} {
		switch {
		case f.want && !f.has:
			return nil, fmt.Errorf("operation %s lacks %q", r.Op, f.name)
		case f.has && !f.want && !(r.Op == api.OpControl && f.name == "service"):
			return nil, fmt.Errorf("operation %s has no %q", r.Op, f.name)
		}
	}
	if r.Service != "" && !validService(r.Service) {
		return nil, fmt.Errorf("%q is not a service name", clip.Bytes(r.Service, maxText))
	}
	return &r, nil
}
