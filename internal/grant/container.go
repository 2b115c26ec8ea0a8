package grant

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"

	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/workshop"
)

func (l *lines) container(c *workshop.Container) {
	at := c.Image.Source
	if c.Build != nil {
		at = c.Build.Source
	}
	l.add(Image, "", ImageText(c, l.form), at)
	if c.Pull.V != workshop.PullMissing || c.Pull.Source.Template != "" {
		l.add(Pull, "", text(l.form, c.Pull), c.Pull.Source)
	}
	l.add(User, "", text(l.form, c.User), c.User.Source)
	l.add(Workdir, "", text(l.form, c.Workdir), c.Workdir.Source)
	l.add(Runtime, "", text(l.form, c.Runtime), c.Runtime.Source)
	if c.Kernel.V.Own() {
		l.add(Kernel, "", string(c.Kernel.V), c.Kernel.Source)
	}
	l.limits(c)
	for i := range c.Mounts {
		m := &c.Mounts[i]
		l.add(Mount, text(l.form, m.Target), MountLine(m, l.form), m.At)
	}
	for i := range c.Secrets {
		s := &c.Secrets[i]
		l.add(Secret, s.Name, secretText(s, l.form), s.At)
	}
	for i := range c.Caches {
		l.add(Cache, c.Caches[i].Name, cacheText(&c.Caches[i]), c.Caches[i].At)
	}
	for name, v := range c.Env {
		l.add(Env, name, name+"="+strconv.Quote(text(l.form, v)), v.Source)
	}
	if c.GitAuthor.V == workshop.GitAuthorHost {
		l.add(GitAuthor, "", c.GitAuthor.V, c.GitAuthor.Source)
	}
	for _, p := range c.Ports {
		key := textOf(l.form, p.Target, func(n uint16) string { return strconv.Itoa(int(n)) })
		l.add(Port, key, portLine(&p, l.form), p.At)
	}
}

func (l *lines) limits(c *workshop.Container) {
	sizes := []struct {
		surface Surface
		value   workshop.Value[workshop.Size]
	}{
		{Memory, c.Resources.Memory}, {Scratch, c.Scratch}, {Tmp, c.Tmp}, {Shm, c.Shm}, {Home, c.Home},
	}
	for _, s := range sizes {
		l.add(s.surface, "", textOf(l.form, s.value, workshop.Size.String), s.value.Source)
	}
	r := &c.Resources
	l.add(CPU, "", textOf(l.form, r.CPU, func(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }), r.CPU.Source)
	l.add(PIDs, "", textOf(l.form, r.PIDs, func(n int64) string { return strconv.FormatInt(n, 10) }), r.PIDs.Source)
	l.add(Timeout, "", textOf(l.form, r.Timeout, durationtext.Of), r.Timeout.Source)
}

// PartText is one thing that a container has: empty for none.
func PartText(p workshop.Part, f Form) string {
	switch {
	case p.Rule != nil:
		return RuleText(*p.Rule, f)
	case p.Agent != nil:
		return p.Agent.String()
	case p.Mount != nil:
		return MountLine(p.Mount, f)
	case p.Secret != nil:
		return secretText(p.Secret, f)
	case p.Cache != nil:
		return cacheText(p.Cache)
	case p.Port != nil:
		return portLine(p.Port, f)
	}
	return ""
}

// ImageText is an image, or what one is built of.
func ImageText(c *workshop.Container, f Form) string {
	if c.Build != nil {
		return "build of " + BuildText(c.Build, f) + argsText(c.Build, f)
	}
	return text(f, c.Image)
}

// secretText is a secret, and where its value comes from.
func secretText(s *workshop.Secret, f Form) string {
	switch {
	case s.Env != "":
		return s.Name + " from $" + s.Env
	case s.File.V == "": // of needs: where it comes from is said by the project that grants it
		return s.Name
	}
	return s.Name + " from " + place(f, s.File)
}

// BuildText is the context of a build, and its Dockerfile where that has a name of its own.
func BuildText(b *workshop.Build, f Form) string {
	out := place(f, b.Context)
	if file := place(f, b.Dockerfile); file != "" && file != "Dockerfile" {
		out += " by " + file
	}
	if target := text(f, b.Target); target != "" {
		out += " target " + target
	}
	return out
}

// argsText are the arguments of a build; of values of variables none, which may be secret.
func argsText(b *workshop.Build, f Form) (out string) {
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		if f == Symbols {
			out += ", " + name + "=" + strconv.Quote(text(f, b.Args[name]))
		}
	}
	return out
}

// mountPlaces is "./src at /workspace/src ro". Of needs that name the target alone it is
// "at /workspace/src ro": the project that grants it says what is there.
func mountPlaces(m *workshop.Mount, f Form) string {
	mode := "ro"
	switch {
	case m.ModeTemplate != "" && f == Symbols:
		mode = m.ModeTemplate
	case m.ReadWrite:
		mode = "rw"
	case m.IsCopy():
		mode = "copy"
	}
	at := fmt.Sprintf("at %s %s", place(f, m.Target), mode)
	if m.Source.V == "" {
		return at
	}
	return place(f, m.Source) + " " + at
}

// MountLine has all that a mount opens or leaves out.
func MountLine(m *workshop.Mount, f Form) string {
	out := mountPlaces(m, f)
	for i, glob := range m.Exclude {
		out += []string{" without ", ", "}[min(i, 1)] + word(glob)
	}
	for _, x := range []struct {
		is   bool
		text string
	}{
		{m.GitWritable, "git: rw"}, {m.AllowSockets, "sockets: allow"}, {m.OutsideProject, "outside_project: true"},
	} {
		if x.is {
			out += ", " + x.text
		}
	}
	return out
}

// cacheText is the name of a cache, where it is unless that follows from the name, and
// how large it may become unless that is the default.
func cacheText(c *workshop.Cache) string {
	out := c.Name
	if c.Target.V != path.Join(workshop.CacheDir, c.Name) {
		out += " at " + word(c.Target.V)
	}
	if c.PruneAbove.V != workshop.DefaultPruneAbove {
		out += " prune_above " + c.PruneAbove.V.String()
	}
	return out
}

// Auto is a published port that the machine chooses.
const Auto = "auto"

// PortText is "127.0.0.1:8080->8080" for a port that is published as that number; 0:
// it is not known.
func PortText(p workshop.Port, published uint16) string {
	p.Published = workshop.Value[uint16]{V: published}
	return portPlaces(&p, Values)
}

func portPlaces(p *workshop.Port, f Form) string {
	number := func(n uint16) string {
		if n == 0 {
			return Auto
		}
		return strconv.Itoa(int(n))
	}
	return net.JoinHostPort(cmp.Or(text(f, p.Host), "127.0.0.1"), textOf(f, p.Published, number)) + "->" + textOf(f, p.Target, number)
}

// portLine has all that a port opens.
func portLine(p *workshop.Port, f Form) string {
	out := portPlaces(p, f)
	if p.ExposeBeyondHost {
		out += ", expose_beyond_host: true"
	}
	return out
}
