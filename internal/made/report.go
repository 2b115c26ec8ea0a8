// Package made is what a program of ours says of the container that it runs in, before
// it is ready: what was really made, whatever an engine or a runtime was asked for. The
// host compares it with that (engine.CompareMade).
//
// At that moment nothing of a worker runs, so the report is our own program's. An engine
// that forges it is not caught: it shows what is dropped or changed, not who lies.
package made

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/procinfo"
)

// Prefix begins the line of stdout that has the report, before READY. Fields follow it, as
// key=value; a list is a key more than once.
const Prefix = "MADE "

// A field is ended by ASCII's unit separator, a line of its value by the record separator:
// with Go's quotes, half of the time went into these.
const endField, endLine = "\x1f", "\x1e"

// end is the key of the last field: a line that was cut lacks it.
const end = "end"

// MaxLine bounds the line in bytes; a mount has about 130.
const MaxLine = 256 << 10

// maxNames bounds the entries of a list.
const maxNames = 64

// Report is what a container is. What can't be read is left out, and so differs from
// what was asked.
type Report struct {
	Kernel
	// Status are the [StatusFields] of /proc/self/status.
	Status map[string]string
	// Rlimits are soft and hard limits by the names of Compose: "nofile".
	Rlimits map[string][2]uint64
	// Limits are those of its control groups; nil: they are not visible in it.
	Limits *Limits
	// Mounts are those that are reachable.
	Mounts []Mount
	// Unmasked are paths of the kernel that must be hidden, and aren't.
	Unmasked   []string
	Devices    []string // in /dev
	Interfaces []string // that are up
	// Sockets are the results of opening sockets of families that our seccomp profile
	// refuses, by the family: "EPERM", "ok".
	Sockets map[string]string
}

// Kernel identifies a kernel, and what a process has of it.
type Kernel struct {
	BootID  string // /proc/sys/kernel/random/boot_id, random(4)
	Version string // /proc/version
	// UIDMap and GIDMap are the id mappings of the user namespace, lines joined by ", "
	// (user_namespaces(7)).
	UIDMap, GIDMap string
	// Namespaces by kind: "net" is "net:[4026531840]". A kind that the kernel lacks is
	// left out.
	Namespaces map[string]string
}

// StatusFields are the fields of /proc/self/status of a report.
var StatusFields = []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"}

// Limits are limits of control groups. Memory and Swap are in bytes, Swap is what may be
// used beyond Memory, -1: any. Zero elsewhere: there is none.
type Limits struct {
	Memory, Swap int64
	CPUs         float64
	PIDs         int64
}

// Mount is one mount.
type Mount struct {
	Target, Type                         string
	ReadOnly, NoSetuid, NoDevice, NoExec bool
	Size                                 int64 // of a memory file system, in bytes
	// Device is the name of the machine's device node that is bound there; empty: none is.
	Device string
	// Null: it is /dev/null, which hides a file.
	Null bool
}

// Parse reads a line without its prefix.
func Parse(text string) (*Report, error) {
	if len(text) >= MaxLine {
		return nil, fmt.Errorf("longer than %d bytes", MaxLine)
	}
	r := &Report{
		Kernel: Kernel{Namespaces: map[string]string{}}, Status: map[string]string{}, Rlimits: map[string][2]uint64{}, Sockets: map[string]string{},
	}
	var exist []string
	for {
		field, rest, ended := strings.Cut(text, endField)
		if !ended {
			return nil, fmt.Errorf("it is cut at %.80q", field)
		}
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case end:
			r.Unmasked = slices.DeleteFunc(exist, func(p string) bool {
				return slices.ContainsFunc(r.Mounts, func(m Mount) bool { return m.Target == p })
			})
			return r, nil
		case "exists":
			exist = append(exist, value)
		default:
			if err := r.set(key, strings.ReplaceAll(value, endLine, "\n")); err != nil {
				return nil, fmt.Errorf("%.200q: %w", field, err)
			}
		}
		text = rest
	}
}

// set takes one field.
func (r *Report) set(key, value string) (err error) {
	name, rest, _ := strings.Cut(value, " ")
	switch key {
	case "boot_id":
		r.BootID = strings.TrimSpace(value)
	case "version":
		r.Version = strings.TrimSpace(value)
	case "uid_map":
		r.UIDMap = idMap(value)
	case "gid_map":
		r.GIDMap = idMap(value)
	case "namespace":
		r.Namespaces[name] = rest
	case "status":
		r.Status = procinfo.Status(value, StatusFields)
	case "mountinfo":
		r.mounts(procinfo.Reachable(procinfo.Mounts(value)))
	case "limits":
		r.Limits, err = parseLimits(value)
	case "rlimit":
		soft, hard, _ := strings.Cut(rest, " ")
		var is [2]uint64
		is[0], err = strconv.ParseUint(soft, 10, 64)
		if err == nil {
			is[1], err = strconv.ParseUint(hard, 10, 64)
		}
		r.Rlimits[name] = is
	case "socket":
		r.Sockets[name] = rest
	case "device":
		r.Devices = add(r.Devices, value)
	case "interface":
		r.Interfaces = add(r.Interfaces, value)
	default:
		err = errors.New("unknown")
	}
	return err
}

// line is the value of a field.
func (l *Limits) line() string {
	return fmt.Sprint(l.Memory, l.Swap, l.CPUs, l.PIDs)
}

func parseLimits(line string) (*Limits, error) {
	l, f := &Limits{}, strings.Split(line, " ")
	if len(f) != 4 {
		return nil, errors.New("not four numbers")
	}
	var errs [4]error
	l.Memory, errs[0] = strconv.ParseInt(f[0], 10, 64)
	l.Swap, errs[1] = strconv.ParseInt(f[1], 10, 64)
	l.CPUs, errs[2] = strconv.ParseFloat(f[2], 64)
	l.PIDs, errs[3] = strconv.ParseInt(f[3], 10, 64)
	return l, cmp.Or(errs[:]...)
}

func (r *Report) mounts(all []procinfo.Mount) {
	for i := range all {
		m := &all[i]
		is := Mount{
			Target: m.Target, Type: m.Type, ReadOnly: m.ReadOnly(), NoSetuid: m.Has("nosuid"), NoDevice: m.Has("nodev"), NoExec: m.Has("noexec"),
			Size: m.Size(), Null: m.Root == "/null",
		}
		if m.Type == "devtmpfs" {
			is.Device = strings.TrimPrefix(m.Root, "/")
		}
		r.Mounts = append(r.Mounts, is)
	}
}

func idMap(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = add(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, ", ")
}

// add adds to a list that is shown to people.
func add(list []string, s string) []string {
	if len(list) < maxNames {
		list = append(list, s)
	}
	return list
}
