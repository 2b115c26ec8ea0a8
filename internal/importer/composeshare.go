package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/draft"
)

// service is one of the file.
type service struct {
	name string
	draft.Container
	binds []placedBind
}

// project is where a service has the project, as a workdir; "" where it hasn't.
func (s *service) project() draft.Line {
	for _, b := range s.binds {
		if b.source == "." {
			return draft.Line{Text: draft.Scalar(b.target)}
		}
	}
	return draft.Line{}
}

type placedBind struct {
	bind
	at place
}

// share gives one service's container to the workshop; of several, each worker has its
// own, and the workshop what all have together.
func (i *importing) share(all []service) {
	c := &i.Container
	for _, s := range all {
		for _, b := range s.binds {
			if len(all) == 1 {
				i.addBind(c, b.bind, b.at)
				continue
			}
			i.grant(c, b)
		}
	}
	if len(all) == 1 {
		mounts := c.Mounts
		*c = all[0].Container
		c.Mounts = mounts
		if c.Workdir.Text == "" {
			c.Workdir = all[0].project()
		}
		i.Worker = all[0].name
		i.Workers = []draft.Worker{{Name: all[0].name}}
		i.took("service %s: %s", all[0].name, i.summary())
		return
	}
	if n := slices.IndexFunc(all, func(s service) bool { return s.project().Text != "" }); n >= 0 {
		c.Workdir = all[n].project()
	}
	for _, s := range all {
		k := s.Container
		k.NoMounts = len(s.binds) == 0 && len(c.Mounts) > 0
		if at := s.project(); k.Workdir.Text == "" && at != c.Workdir {
			k.Workdir = at
		}
		if c.Image.Text == "" && k.Image.Text != "" {
			c.Image = k.Image
		}
		for _, b := range s.binds {
			i.addBind(&k, b.bind, b.at)
		}
		for _, l := range k.Secrets {
			if !slices.Contains(c.Secrets, l) {
				c.Secrets = append(c.Secrets, l)
			}
		}
		names := (&Imported{Container: k}).SecretNames()
		k.Secrets = nil
		i.Workers = append(i.Workers, draft.Worker{Name: s.name, Secrets: names, Container: &k})
	}
	if c.Image.Text == "" {
		c.Image = draft.Line{Text: "host"}
	}
	i.took("%s, a worker each", count(len(all), "service"))
}

// grant adds a source to the workshop's mounts: a worker may have no other.
func (i *importing) grant(c *draft.Container, b placedBind) {
	for k, l := range c.Mounts {
		if l.Text == (&bind{b.source, targetOf(l.Text), false}).line().Text && b.readWrite {
			c.Mounts[k] = (&bind{b.source, targetOf(l.Text), true}).line()
			return
		}
		if x := (&bind{b.source, targetOf(l.Text), b.readWrite}); l.Text == x.line().Text || l.Text == (&bind{b.source, targetOf(l.Text), true}).line().Text {
			return
		}
	}
	for n := 2; slices.ContainsFunc(c.Mounts, func(l draft.Line) bool { return targetOf(l.Text) == b.target }); n++ {
		b.target = fmt.Sprintf("%s-%d", strings.TrimRight(b.target, "-0123456789"), n)
	}
	c.Mounts = append(c.Mounts, b.line())
	if b.source == "." && b.readWrite {
		c.Mounts = append(c.Mounts, draft.Line{Text: draft.Scalar("./workshop.yaml:" + path.Join(b.target, "workshop.yaml"))})
	}
}
