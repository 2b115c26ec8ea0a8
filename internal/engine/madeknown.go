package engine

import (
	"fmt"
	"strings"
	"sync"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/made"
)

// Reports are what the containers of one Apply have reported. The zero value is ready.
type Reports struct {
	mu        sync.Mutex
	machine   *made.Kernel
	first     *made.Report
	byService map[string]*made.Report
}

// Add parses the report of a service that joins a room, or none (""), and returns it
// with what is known besides.
func (all *Reports) Add(service, room, text string, info Info) (*made.Report, Known, error) {
	if text == "" {
		return nil, Known{}, &RefusedError{Reason: service + " said nothing of its container before it was ready", Do: unknownMade}
	}
	r, err := made.Parse(text)
	if err != nil {
		return nil, Known{}, &RefusedError{Reason: fmt.Sprintf("what %s said of its container is not valid: %v", service, err), Do: unknownMade}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.machine == nil && info.Local {
		k := made.ReadKernel()
		all.machine = &k
	}
	k := Known{Machine: all.machine, First: all.first, Room: all.byService[room], Unseen: UnseenMade(info)}
	if all.first == nil {
		all.first, all.byService = r, map[string]*made.Report{}
	}
	all.byService[service] = r
	return r, k, nil
}

const unknownMade = "remove it with `workshop down`, and run `workshop up` again"

// RefuseMade returns the refusal of a container that isn't what was asked for, nil
// without a difference.
func RefuseMade(role compose.Role, service string, all []Difference) error {
	what := role.String() + " " + service
	if role.String() == service {
		what = service
	}
	return RefuseDifferences(what, all, "see what the engine and its runtime are: `workshop doctor`")
}

// CapabilitySet are capabilities by name, with or without "CAP_", as the kernel's set.
func CapabilitySet(names []string) (set uint64, err error) {
	for _, name := range names {
		n, ok := capabilityBits[strings.TrimPrefix(strings.ToUpper(name), "CAP_")]
		if !ok {
			return 0, fmt.Errorf("unknown capability %q", name)
		}
		set |= 1 << n
	}
	return set, nil
}

// capabilityBits are those that a room has (capabilities(7)).
var capabilityBits = map[string]int{"NET_BIND_SERVICE": 10, "NET_ADMIN": 12}
