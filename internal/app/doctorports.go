package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/ports"
)

// PortsReport is what `workshop doctor ports` found.
type PortsReport struct {
	Level    doctor.Level         `json:"level"` // of the worst finding that is left
	Findings []doctor.PortFinding `json:"findings"`
	// Fixed are the findings that are gone.
	Fixed []doctor.PortFinding `json:"fixed"`
	// Checked counts the registered ports.
	Checked int `json:"checked"`
	// Unseen is what couldn't be looked at, and why.
	Unseen []string `json:"unseen"`
}

// DoctorPorts compares the registry, the files of known projects and the sockets of this
// machine. With fix it gives up leases that nothing needs; it never touches what runs.
func (env *Env) DoctorPorts(ctx context.Context, fix bool) (PortsReport, error) {
	seen, err := env.lookAtPorts(ctx, true)
	if err != nil {
		return PortsReport{}, err
	}
	r := PortsReport{Level: doctor.OK, Findings: []doctor.PortFinding{}, Fixed: []doctor.PortFinding{}, Checked: len(seen.Claims), Unseen: []string{}}
	for _, why := range append(seen.unread, seen.blind) {
		if why != "" {
			r.Unseen = append(r.Unseen, why)
		}
	}
	if seen.partial {
		r.Unseen = append(r.Unseen, "an engine doesn't answer: what is up there isn't known")
	}
	var plain doctor.Report
	for _, f := range doctor.Ports(seen.PortsSeen) {
		if fix && f.Fixable {
			fixed, err := env.giveUp(ctx, *f.Lease, f.Name == doctor.PortDirectoryGone)
			if err != nil {
				return r, registryError(err)
			}
			if fixed {
				r.Fixed = append(r.Fixed, f)
				continue
			}
		}
		r.Findings, plain.Findings = append(r.Findings, f), append(plain.Findings, f.Finding)
	}
	r.Level = plain.Level()
	return r, nil
}

// giveUp gives up a lease that nothing needs, unless another command works on its project
// or has changed it. gone: its directory is, still.
func (env *Env) giveUp(ctx context.Context, l ports.Lease, gone bool) (done bool, err error) {
	if !strings.ContainsAny(l.Project, `/\`) { // else nothing has that name
		unlock := env.briefly(ctx, l.Project)
		if unlock == nil {
			return false, nil
		}
		defer unlock()
	}
	err = env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
		i := slices.IndexFunc(all, func(x ports.Lease) bool { return x.Key == l.Key && x.Port == l.Port })
		if done = i >= 0 && (!gone || !Exists(l.Dir)); !done {
			return all, nil
		}
		return slices.Delete(all, i, i+1), nil
	})
	return done && err == nil, err
}

// registryFile is what is wrong with the registry's file; nil: it is another error.
func registryFile(err error) *ports.FileError {
	bad, _ := errors.AsType[*ports.FileError](err)
	return bad
}

// checkPorts sums up what `workshop doctor ports` says, without the files of projects.
func (env *Env) checkPorts(ctx context.Context) []doctor.Finding {
	f := doctor.Finding{Group: doctor.Network, Name: "ports", Level: doctor.OK}
	seen, err := env.lookAtPorts(ctx, false)
	if err != nil {
		f.Level, f.Text = doctor.Error, err.Error()
		return []doctor.Finding{f}
	}
	found := doctor.Ports(seen.PortsSeen)
	switch n := len(found); {
	case n > 0:
		f.Level, f.Text, f.Do = found[0].Level, Count(n, "finding")+" about published ports, such as: "+found[0].Text, "see all of them: `workshop doctor ports`"
	case len(seen.Claims) == 0:
		f.Text = "no port of a workshop is registered"
	default:
		f.Text = fmt.Sprintf("%s of workshops registered, without a conflict", Count(len(seen.Claims), "port"))
	}
	return []doctor.Finding{f}
}
