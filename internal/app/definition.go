package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// redefined returns the files of a definition that workers of any project can have
// written since the project accepted them; its name is empty where it has accepted none.
func (env *Env) redefined(project string, d facts.Definition) ([]facts.Redefinition, error) {
	all, err := facts.Records(env.recordsDir())
	if err != nil {
		return nil, Fail(CodeFailed, "%w", err).Hint("`workshop -p NAME down` removes the record of a project")
	}
	return d.Redefined(project, all), nil
}

// ReviewDefinition refuses a definition that workers can have written since it was
// accepted, unless ask, which may be nil, says yes. The lines are shown.
func (env *Env) ReviewDefinition(ctx context.Context, p *Project, ask func(context.Context, string) (bool, error)) error {
	_, err := env.review(ctx, p, UpOptions{Ask: ask})
	return err
}

// ShowRedefined shows what [Env.ReviewDefinition] would refuse, and reports whether there
// is anything.
func (env *Env) ShowRedefined(ctx context.Context, p *Project) (bool, error) {
	return env.review(ctx, p, UpOptions{DryRun: true})
}

func (env *Env) review(ctx context.Context, p *Project, o UpOptions) (redefined bool, err error) {
	d := p.definition()
	list, err := env.redefined(p.Name, d)
	if err != nil {
		return false, err
	}
	return len(list) > 0, env.reviewDefinition(ctx, p, list, d, o)
}

// reviewDefinition shows the lines of the project's definition that a worker can have
// written since they were accepted. They are refused unless somebody takes them: what
// runs next would obey them. A dry run, which obeys nothing, says so. A digest is refused
// where it isn't of these lines, also where there are none.
func (env *Env) reviewDefinition(ctx context.Context, p *Project, list []facts.Redefinition, d facts.Definition, o UpOptions) (err error) {
	if len(list) == 0 {
		if o.AcceptWatched == "" || o.AcceptWatched == AcceptAll {
			return nil
		}
		const text = "nothing is to be accepted with --accept-watched=%s (B8): the workshop's own files are as they were accepted"
		if o.DryRun && !o.Strict {
			env.warn(text, Printable(o.AcceptWatched))
			return nil
		}
		return Fail(CodeRefused, text+"; nothing was started", Printable(o.AcceptWatched)).
			Hint("run `workshop up`; other watched files are accepted by `workshop up --accept-watched`")
	}
	all := true
	for _, x := range list {
		now, before := d.Known[x.Path], x.Before
		switch {
		case d.Raw[x.Path] == nil:
			env.warn("%s was removed since the last `up`", env.shownClipped(x.Path))
			all = false
			continue
		case strings.HasPrefix(now, hashed) || strings.HasPrefix(before, hashed):
			env.warn("%s changed since the last `up`; its values aren't shown", env.shownClipped(x.Path))
			all = false
			continue
		}
		lines := changedLines([]byte(before), []byte(now))
		if n := len(lines) - maxShownLines; n > 0 {
			lines, all = append(lines[:maxShownLines], fmt.Sprintf("and %d more lines", n)), false
		}
		for i, l := range lines {
			if len(l) > maxShownLine {
				l, all = fmt.Sprintf("%s and %d more bytes", clip.Bytes(l, maxShownLine), len(l)-maxShownLine), false
			}
			lines[i] = "\n" + Printable(l)
		}
		env.warn("%s, since the last `up`:%s", env.shownClipped(x.Path), strings.Join(lines, ""))
	}
	first := list[0]
	file, way := env.shownClipped(first.Path), first.By.Way(first.Path)
	late := ""
	if way.Kind == facts.Writable && first.By.Project == p.Name && p.Compiled != nil && facts.Covered(p.Compiled, first.Path) {
		late = " (its read-only mount counts from the next `down` on)"
	}
	digest := digestOf(list, d)
	hint := "read what changed; if it is yours, run `workshop up --accept-watched=" + digest + "`"
	if by := first.By; p.run != nil && by.OneOff && by.Down {
		hint = "read what changed; if it is yours, run `workshop -p " + by.Project + " down --accept-watched`"
	}
	taken := o.AcceptWatched == AcceptAll || o.AcceptWatched == digest
	if o.DryRun && !o.Strict && !taken {
		env.warn("%s changed, and a worker may have written that (B8): %s; `up` asks before it obeys that", file, env.wayText(way, first.Path)+late)
		env.hint("%s", hint)
		return nil
	}
	// Nobody is asked about lines that they weren't shown.
	if !taken && all && o.Ask != nil && !o.Strict && o.AcceptWatched == "" {
		if taken, err = o.Ask(ctx, "a worker may have written these lines: "+env.wayText(way, "")+late+"; are they yours?"); err != nil {
			return err
		}
	}
	switch {
	case taken:
		return nil
	case o.AcceptWatched != "":
		return Fail(CodeRefused, "%s isn't what --accept-watched=%s was printed for (B8): it changed since; nothing was started or loaded", file, Printable(o.AcceptWatched)).Hint("%s", hint)
	}
	return Fail(CodeRefused, "%s changed, and a worker may have written that (B8): %s; nothing was started or loaded", file, env.wayText(way, first.Path)+late).Hint("%s", hint)
}

// AcceptAll is UpOptions.AcceptWatched for whatever there is.
const AcceptAll = "all"

// digestOf names what of a definition changed, so that no other text is accepted than
// the one that was shown. 128 bits: a worker that writes both texts finds two with one
// digest after 2^64 attempts, not after the 2^32 of 64 bits.
func digestOf(list []facts.Redefinition, d facts.Definition) string {
	h := sha256.New()
	for _, x := range list {
		fmt.Fprintf(h, "%q %t %q\n", x.Path, d.Raw[x.Path] != nil, d.Raw[x.Path])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// redefinedText says of a definition that isn't obeyed why; empty: it is, as far as the
// records can be read.
func (env *Env) redefinedText(project string, s *Source) string {
	list, err := env.redefined(project, s.definition())
	if err != nil || len(list) == 0 {
		return ""
	}
	return "a worker may have written what changed in " + env.shownClipped(list[0].Path) + " (B8): `workshop up --dry-run` shows it, and how to accept it"
}

// StartHint says how to start what doesn't run: where `up` would refuse the project's
// definition, with what it says of that.
func (env *Env) StartHint(ctx context.Context, t ProjectRef) string {
	if t.File != "" {
		before, err := env.Record(t.Name)
		if s, unread := env.Read(ctx, t.File); err == nil && unread == nil && (before == nil || before.Dir == t.Dir) {
			if text := env.redefinedText(t.Name, s); text != "" {
				return text
			}
		}
	}
	return "start it with `workshop up`"
}

// wayText says how a worker can have written a file, which the sentence before names.
func (env *Env) wayText(way facts.Way, file string) string {
	worker := "a worker"
	if len(way.Workers) > 0 {
		worker = WorkersText(way.Workers)
	}
	switch it := "it"; way.Kind {
	case facts.Writable:
		return it + " was writable in " + worker + " since the first `up`"
	case facts.CoverLost, facts.CoverUnknown:
		if way.Cover != file {
			it = env.shownClipped(way.Cover)
		}
		if way.Kind == facts.CoverLost {
			return it + " was replaced on this machine, as by an editor that saves a file anew, so its read-only mount in " + worker + " was lost for a moment"
		}
		return "its read-only mount in " + worker + " may have been lost, which this file system doesn't tell"
	case facts.Through:
		return "symbolic links lead to it through " + env.shownClipped(way.Cover) + ", which was writable in " + worker + " since the first `up`"
	}
	return "it has several names (hard links)"
}

const (
	// maxShownLines of a changed file are shown.
	maxShownLines = 60
	// maxShownLine bytes of one are.
	maxShownLine = 400
)
