package compose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// Compile turns a workshop into a project in which B1 to B12 hold as far as a
// project can say them without the machine. It depends on the workshop alone:
// paths are relative to the generated directory, the user and everything else
// that the machine decides is left to [WithFacts].
//
// An error means that the workshop uses a name that the project needs itself,
// that a worker has more tools than fit into an argument, or a room more upload
// budgets than it keeps.
func Compile(w *workshop.Workshop) (*Compiled, error) {
	c := &compiler{
		w:       w,
		ruleEnv: map[string]string{},
		out: &Compiled{
			Project: &types.Project{
				Name:     w.Name.V,
				Services: types.Services{},
				Networks: types.Networks{},
				Volumes:  types.Volumes{},
			},
			Roles:    make(map[string]Role, len(w.Workers)+2),
			RoomOf:   make(map[string]string, len(w.Workers)),
			Rulesets: map[string]firewall.Ruleset{},
			Copies:   map[string]Copy{},
			Caches:   map[string]Cache{},
			Seccomp:  SeccompProfile(),
			Origins:  make(map[string]diag.Source, 16*len(w.Workers)),
			workshop: w,
			workers:  make(map[string]*workshop.Worker, len(w.Workers)),
		},
	}
	c.toolsVolume()
	rooms := groupRooms(w)
	if err := checkNames(w, rooms); err != nil {
		return nil, err
	}
	c.endpoints(rooms)
	for i := range rooms {
		p := &rooms[i].policy
		if n := p.Budgets(); n > firewall.MaxBudgets {
			c.errs = append(c.errs, fmt.Errorf("network of %s: %d lines with an upload budget, at most %d: give fewer lines one", strings.Join(p.Workers, ", "), n, firewall.MaxBudgets))
		}
		for _, name := range p.Workers {
			c.out.RoomOf[name] = p.Room
		}
	}
	for i := range w.Workers {
		c.out.workers[w.Workers[i].Name] = &w.Workers[i]
		c.worker(&w.Workers[i])
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	for i := range rooms {
		c.room(&rooms[i])
		if w := c.ownKernel(&rooms[i]); w != nil {
			c.outlet(rooms[i].policy.Room, w)
		}
	}
	if len(rooms) > 0 {
		c.guard(rooms)
	}
	return c.out, nil
}

// compiler is one run of Compile.
type compiler struct {
	w   *workshop.Workshop
	out *Compiled
	// ruleEnv names, per template of a rule, the guard's variable for it.
	ruleEnv map[string]string
	// endpointPorts are the ports of endpoints by their names.
	endpointPorts map[string]uint16
	errs          []error
}

// add puts a finished service into the project.
func (c *compiler) add(s types.ServiceConfig, role Role) {
	c.out.Project.Services[s.Name] = s
	c.out.Roles[s.Name] = role
}

// checkNames refuses workers that are called like one of our services.
func checkNames(w *workshop.Workshop, rooms []roomGroup) error {
	ours := map[string]bool{GuardService: true}
	for i := range rooms {
		ours[rooms[i].policy.Room] = true
	}
	var errs []error
	for i := range w.Workers {
		name := w.Workers[i].Name
		for _, prefix := range []string{roomPrefix, outletPrefix} {
			ours[name] = ours[name] || name == prefix || strings.HasPrefix(name, prefix+"-")
		}
		if ours[name] {
			errs = append(errs, fmt.Errorf("%s: a worker can't be called %q: the generated project uses that name; rename the worker",
				w.Workers[i].Source.Range, name))
		}
	}
	return errors.Join(errs...)
}

func ptr[T any](v T) *T { return &v }
