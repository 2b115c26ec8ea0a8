package verify

import (
	"slices"
	"strings"
)

// SecretValues are what is searched for outside; Where is how often each text was found
// to have one.
type SecretValues struct {
	Names  []string
	Found  []string // "the engine's configuration of bob"
	Looked []string // where
}

func (w *Worker) secrets() Line {
	e := w.begin("B11")
	e.tried("which secrets are in /run/secrets")
	r, ok := w.Seen["secrets"]
	if !ok {
		e.miss("the probe said nothing of secrets")
		return e.line()
	}
	var have []string
	if r.Seen != "empty" && r.Seen != "ENOENT" {
		have = strings.Split(r.Seen, ",")
	}
	for _, name := range have {
		if !slices.Contains(w.Secrets, name) {
			if w.Changed {
				e.miss("it has the secret %s: %s", name, fileChanged)
				continue
			}
			e.inside(false, "it has the secret %s, which the file doesn't give it", name)
		}
	}
	e.inside(true, "secrets: %s", listOr(have, "none"))
	for _, name := range w.Secrets {
		s, ok := w.Seen["secret."+name]
		e.control(ok && strings.Contains(s.Seen, ":"), "its own secret %s: %s", name, saw(s))
	}
	if p := w.files(e); p != nil && !p.unread(e, "mounts") {
		for _, m := range p.Mounts {
			name, is := strings.CutPrefix(m.Target, "/run/secrets/")
			if !is {
				continue
			}
			if !slices.Contains(w.Secrets, name) && !w.Changed {
				e.outside(false, "the secret %s is mounted", name)
			}
			e.outside(m.ReadOnly(), "the secret %s is mounted %s", name, mode(m.ReadOnly()))
		}
		p.isMain(e)
	}
	return e.line()
}

// Secrets judges where values of secrets were looked for.
func Secrets(s SecretValues) Line {
	e := about("B11", "")
	e.tried("the values of %d secrets in %s", len(s.Names), listOr(s.Looked, "nothing"))
	for _, found := range s.Found {
		e.outside(false, "a value is in %s", found)
	}
	e.outside(true, "found %d times", len(s.Found))
	e.control(len(s.Looked) > 0, "%d texts were searched", len(s.Looked))
	if len(s.Names) == 0 {
		return notTested("B11", "", "no worker has a secret whose value is known here")
	}
	return e.line()
}

func (w *Worker) ports() Line {
	e := about("B10", w.Name)
	e.tried("what is published for it")
	e.control(true, "%d ports of the file", len(w.Published))
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return e.line()
	}
	for _, at := range w.Outside.Published { // a worker's own container publishes nothing
		e.outside(false, "its container publishes %s", at)
	}
	e.outside(true, "its container publishes nothing itself")
	return e.line()
}

// Published judges the ports that the guard publishes: declared are the addresses of the
// file, listening those at which this machine listens.
func Published(o *Outside, declared, listening []string, changed bool) Line {
	e := about("B10", "guard")
	e.tried("the addresses at which ports are published")
	if o == nil || o.Why != "" {
		o.process(e)
		return e.line()
	}
	for _, at := range o.Published {
		switch ok := slices.Contains(declared, at); {
		case !ok && changed && strings.HasPrefix(at, "127.0.0.1:"):
			e.miss("%s is published: %s", at, fileChanged)
		default:
			e.outside(ok, "published at %s", at)
		}
	}
	for _, at := range listening {
		port := at[strings.LastIndex(at, ":"):]
		mine := slices.ContainsFunc(declared, func(d string) bool { return strings.HasSuffix(d, port) })
		if mine && (strings.HasPrefix(at, "0.0.0.0:") || strings.HasPrefix(at, "[::]:")) && !slices.Contains(declared, at) {
			e.outside(false, "this machine listens at %s", at)
		}
	}
	found := 0
	for _, d := range declared {
		if slices.Contains(listening, d) || slices.Contains(o.Published, d) {
			found++
		}
	}
	e.control(found == len(declared) || changed, "%d of %d addresses of the file are published", found, len(declared))
	e.outside(true, "%d ports are published", len(o.Published))
	return e.line()
}
