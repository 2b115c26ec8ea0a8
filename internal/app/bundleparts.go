package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/tokens"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/internal/session/audit"
)

// bundleParts are the files about the workshop here.
var bundleParts = []struct {
	name, about string
	read        func(context.Context, *Env, *bundledWorkshop, *doctor.Redactor) ([]byte, error)
}{
	{"ps.json", "the containers of the workshop here", bundlePs},
	{"config.json", "its configuration, without values", bundleConfig},
	{"guard.log", "the last events of its guard", bundleGuard},
	{"supervisor.log", "what its supervisor said", bundleSupervisor},
}

// bundledWorkshop is the workshop here.
type bundledWorkshop struct {
	ref ProjectRef
	src *Source // nil: the file can't be read
	// values are those that are taken out of every file.
	values []string
}

func bundlePs(ctx context.Context, env *Env, here *bundledWorkshop, _ *doctor.Redactor) ([]byte, error) {
	s, err := env.Status(ctx, false)
	if err != nil {
		return nil, err
	}
	return indented(s.Containers)
}

// valueKeys are keys of a workshop file whose values are never in a bundle.
var valueKeys = []string{"env", "args", "match", "command", "instructions"}

func bundleConfig(_ context.Context, _ *Env, here *bundledWorkshop, red *doctor.Redactor) ([]byte, error) {
	if here.src == nil {
		return nil, errors.New("the file can't be read")
	}
	if here.src.Workshop == nil {
		var b bytes.Buffer
		for _, d := range here.src.Diagnostics {
			fmt.Fprintf(&b, "%d:%d: %s [%s]\n", d.Range.Start.Line, d.Range.Start.Column, d.Severity, d.Code)
		}
		return b.Bytes(), nil
	}
	doc := plainConfig(here.src.Workshop)
	hideValues("", doc, red)
	return indented(doc)
}

// hideValues replaces values in place, and hosts by what stands for them.
func hideValues(key string, v any, red *doctor.Redactor) {
	hide := func(s string) string {
		switch {
		case key == "allow" || key == "deny":
			return red.Host(s)
		case slices.Contains(valueKeys, key):
			return audit.Replacement
		case key == "tools":
			return withoutLimit(s)
		}
		return s
	}
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			switch text, is := below.(string); {
			case slices.Contains(valueKeys, key), is && (k == "match" || k == "command" || k == "instructions"):
				v[k] = audit.Replacement
			case is && k == "host":
				v[k] = red.Host(text)
			case is && k == "description":
				v[k] = string(tokens.Mask([]byte(text)))
			default:
				hideValues(k, below, red)
			}
		}
	case []any:
		for i, below := range v {
			if text, is := below.(string); is {
				v[i] = hide(text)
				continue
			}
			hideValues(key, below, red)
		}
	}
}

// withoutLimit is a tool without what it is limited to, as in Bash(git:*).
func withoutLimit(tool string) string {
	if name, _, limited := strings.Cut(tool, "("); limited {
		return name + "(" + audit.Replacement + ")"
	}
	return tool
}

// bundledEvents is how many events of the guard are kept.
const bundledEvents = 200

// bundleGuard has the guard's events with other names for hosts.
func bundleGuard(ctx context.Context, env *Env, here *bundledWorkshop, red *doctor.Redactor) ([]byte, error) {
	e, _, err := env.ObserveGuard(ctx, here.ref, "", false)
	if IsNotUp(err) || err != nil {
		return nil, nil // none runs
	}
	defer e.Close()
	var b bytes.Buffer
	log := &GuardLog{Ends: true, Tail: bundledEvents, Each: func(_ []byte, l events.Line) error {
		l.Name = red.Host(l.Name)
		l.Rule, l.Suggest, l.Why = "", "", ""
		line, err := json.Marshal(l)
		b.Write(append(line, '\n'))
		return err
	}}
	_, err = log.Read(ctx, e)
	return b.Bytes(), err
}

// bundleSupervisor has the end of the supervisor's log, without any value that the
// workshop's files have now or had at the last `up`: the log may quote older ones.
func bundleSupervisor(_ context.Context, env *Env, here *bundledWorkshop, _ *doctor.Redactor) ([]byte, error) {
	if env.StateDir() == "" {
		return nil, nil
	}
	f, err := boundedfile.Open(filepath.Join(env.StateDir(), promise.Namespace, here.ref.Name, "supervisor.log"))
	if err != nil {
		return nil, nil // there is none
	}
	defer f.Close()
	cut := false
	if info, err := f.Stat(); err == nil && info.Size() > maxBundleFile {
		if _, err := f.Seek(-maxBundleFile, io.SeekEnd); err != nil {
			return nil, err
		}
		cut = true
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBundleFile))
	if err != nil {
		return nil, err
	}
	if cut {
		text = wholeLines(text)
	}
	values, err := env.definedValues(here.ref)
	if err != nil {
		return nil, err
	}
	// With the values of all files: of several that overlap the longest is taken out.
	all := doctor.NewRedactor(doctor.Secrets{Values: slices.Concat(values, here.values)})
	return []byte(all.Text(string(text))), nil
}

func indented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}

// machineFacts are what the kernel says of itself.
func machineFacts() []byte {
	var b bytes.Buffer
	for _, file := range []string{"/proc/version", "/etc/os-release", "/proc/self/cgroup", "/proc/swaps", "/proc/filesystems", "/proc/self/status", "/proc/self/limits"} {
		if data, err := boundedfile.Read(file, 64<<10); err == nil {
			fmt.Fprintf(&b, "# %s\n%s\n", file, data)
		}
	}
	if data, err := boundedfile.Read("/proc/self/mountinfo", 1<<20); err == nil {
		b.WriteString("# /proc/self/mountinfo, control groups\n")
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, " - cgroup") {
				b.WriteString(line)
			}
		}
	}
	return b.Bytes()
}
