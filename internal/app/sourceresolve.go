package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/workshop"
)

// resolver chooses the commits of sources for a lock. It lives as long as the workshop is
// read again, because a source that more files name must be of a release that fits all.
type resolver struct {
	// upgrade: the newest of a source is taken; else what the lock has stays if it fits.
	upgrade func(id string) bool
	// yes agrees to sources that the settings allow.
	yes bool
	// wanted are the versions and signers of files that what was chosen didn't fit, by IDs.
	wanted map[string][]want
	// chosen are sources that were looked up, and contacted those whose servers may be
	// asked, by IDs.
	chosen    map[string]*openedSource
	contacted map[string]bool
	// held stay as they are locked where that fits: the newest release was refused.
	held   map[string]bool
	again  bool
	rounds int
}

// maxRounds bounds how often everything is read again: what hostile releases want of each
// other has no end.
const maxRounds = 32

// want is what a file wants of a source.
type want struct {
	source.Version
	signer string // the fingerprint of a key, or ""
}

func (w want) same(o want) bool { return w.String() == o.String() && w.signer == o.signer }

func (w want) fits(l source.Locked) bool {
	return w.Allows(l.Ref, l.Commit) && (w.signer == "" || w.signer == keyOf(l.Signed))
}

func newResolver(upgrade func(id string) bool, yes bool) *resolver {
	return &resolver{upgrade: upgrade, yes: yes, wanted: map[string][]want{}, chosen: map[string]*openedSource{}, contacted: map[string]bool{}, held: map[string]bool{}}
}

// resolved is what the lock has of a source where that fits, else what a version means now.
// got is what was opened of it for another file.
func (s *sources) resolved(ctx context.Context, id source.ID, v source.Version, ref workshop.SourceRef, got *openedSource) (*openedSource, error) {
	r, name := s.resolve, id.String()
	wants := want{v, ref.Signer}
	if got != nil {
		err := s.fits(id, v, ref, got.Locked)
		if err == nil || slices.ContainsFunc(r.wanted[name], wants.same) {
			return got, err
		}
		// Another release may fit all: everything is read again with it.
		r.wanted[name] = append(r.wanted[name], wants)
		delete(r.chosen, name)
		r.rounds++
		r.again = r.rounds < maxRounds
		return nil, err
	}
	if chosen := r.chosen[name]; chosen != nil {
		return chosen, s.fits(id, v, ref, chosen.Locked)
	}
	before, known := s.entry(id)
	misfit := func(o want) bool { return !o.fits(before) }
	if known && (!r.upgrade(name) || r.held[name]) && !misfit(wants) && !slices.ContainsFunc(r.wanted[name], misfit) {
		return s.locked(ctx, id, v, ref)
	}
	chosen, err := s.latest(ctx, id, v, ref, before)
	if err != nil {
		s.failed[name] = err
		return nil, err
	}
	r.chosen[name] = chosen
	return chosen, nil
}

// latest asks a source for its releases, and fetches the newest that fits. Who signed it
// must be whom the settings and the file name, and who signed what the lock has.
func (s *sources) latest(ctx context.Context, id source.ID, v source.Version, ref workshop.SourceRef, before source.Locked) (*openedSource, error) {
	refuse := func(err error) (*openedSource, error) { return nil, noSource("source-refused", "%s", err) }
	if s.env.Offline {
		return nil, withHint(noSource("source-not-locked", "which commit of %s is %s isn't in %s, and --offline asks nobody", id, versionText(v), s.lockName), "run it without --offline")
	}
	required, err := s.signers()
	if err != nil {
		return refuse(err)
	}
	keys := []string{ref.Signer, keyOf(before.Signed)}
	var also []source.Version
	for _, w := range s.resolve.wanted[id.String()] {
		keys, also = append(keys, w.signer), append(also, w.Version)
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		pinned, err := source.PinnedSigner(key)
		if err != nil {
			return refuse(err)
		}
		required = append(required, pinned)
	}
	if err := s.mayAsk(ctx, id, v); err != nil {
		return nil, err
	}
	release, err := source.Latest(ctx, id, v, also, required)
	if _, is := errors.AsType[*source.SignatureError](err); is || err == nil && len(required) > 0 && release.Signed == nil {
		if err == nil {
			err = source.ErrUnsigned
		}
		return nil, s.badSignature(id, ref, before, release, err)
	}
	if _, is := errors.AsType[*source.VersionError](err); is {
		return nil, withHint(markedAt(noSource("source-version", "%s", err), ref.VersionAt), "write a version that it has")
	}
	if err != nil {
		return nil, notReached(err)
	}
	if release.Signed != nil && before.Signed != nil && release.Signed.By == release.Signed.Key {
		release.Signed = before.Signed // the same key, with the name that it has
	}
	return &openedSource{id: id, Release: release}, nil
}

func keyOf(s *source.Signer) string {
	if s == nil {
		return ""
	}
	return s.Key
}

// badSignature says why who signed a release doesn't count.
func (s *sources) badSignature(id source.ID, ref workshop.SourceRef, before source.Locked, release source.Release, err error) error {
	settings, _ := s.said()
	text := err.Error()
	if release.Ref != "" {
		text = id.String() + ": " + release.Ref + ": " + text
	}
	switch {
	case before.Signed != nil:
		return withHint(noSource("source-refused", "%s; %s was signed by %s", text, before.Ref, before.Signed),
			"ask those who keep the source; if that is right, remove the entry of %s from %s, and run `workshop lock`", id, s.lockName)
	case ref.Signer != "":
		return noSource("source-refused", "%s; it must be signed by %s", text, ref.Signer)
	}
	return noSource("source-refused", "%s; it must be signed by a key of %s", text, wantedSigners(settings))
}

// mayAsk asks whether a source may be contacted for its releases, where this user didn't
// agree to any of it before. What would be refused in the end is refused before.
func (s *sources) mayAsk(ctx context.Context, id source.ID, v source.Version) error {
	name := id.String()
	agreed, err := s.agreed(id)
	if err != nil {
		return noSource("source-refused", "%s", err)
	}
	if s.resolve.contacted[name] || agreed && (s.resolve.yes || s.env.AgreeSources != nil) {
		return nil
	}
	list, err := s.env.acceptedSources(id)
	if err != nil {
		return noSource("source-refused", "%s", err)
	}
	if len(list) == 0 {
		if err := s.ask(ctx, SourceRequest{Stage: StageAsk, ID: name, From: id.From(), Version: v.String()}); err != nil {
			return err
		}
	}
	s.resolve.contacted[name] = true
	return nil
}

// acceptChosen shows what was looked up and what it grants in the workshop, and asks once
// whether it is to be used. What was accepted is kept, in the cache too.
func (s *sources) acceptChosen(ctx context.Context, w *workshop.Workshop) error {
	var all []SourceRequest
	ask := false
	chosen := s.resolve.chosen
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		c := chosen[name]
		if s.opened[name] != c {
			delete(chosen, name) // another file of an earlier reading named it
			continue
		}
		s.warnMoved(name, c.Locked)
		list, err := s.env.acceptedSources(c.id)
		if err != nil {
			return Fail(CodeRefused, "%w", err)
		}
		if slices.ContainsFunc(list, isLocked(c.Locked)) {
			continue
		}
		agreed, err := s.agreed(c.id)
		if err != nil {
			return err
		}
		ask = ask || !agreed || !s.resolve.yes
		all = append(all, SourceRequest{
			Stage: StageUse, ID: name, From: c.id.From(), Version: c.Original, Ref: c.Ref, Commit: c.Commit, Signer: signerText(c.Signed),
			Files: len(c.Files), Needs: needsText(c.Files), Grants: c.grants(w),
		})
	}
	if ask {
		if err := s.ask(ctx, all...); err != nil {
			return sourceFailure(err)
		}
	} else if len(all) > 0 && s.env.ShowSources != nil && !s.env.Quiet {
		s.env.ShowSources(all)
	}
	for _, c := range chosen {
		if err := s.env.sourceCache().Put(c.Files); err != nil {
			return err
		}
		if err := s.env.keepAccepted(c.id, c.Locked, keyOf(c.Signed)); err != nil {
			return err
		}
	}
	return nil
}

// warnMoved says of a release that its tag is at another commit than when it was locked:
// whoever keeps the source has changed what was published.
func (s *sources) warnMoved(name string, now source.Locked) {
	if s.lock == nil {
		return
	}
	before := s.lock.Sources[name]
	if before.Commit != "" && before.Commit != now.Commit && before.Ref == now.Ref && strings.HasPrefix(now.Ref, "refs/tags/") {
		s.env.warn("source %s: the tag %s was moved: it was at %s when it was locked, and is at %s now", name, strings.TrimPrefix(now.Ref, "refs/tags/"), before.Commit, now.Commit)
	}
}

// grants is what the workers of a workshop have by the word of a source that is one of its
// bases, a line for each thing, as the lock will have it. What an import gets is the word of
// who imports it.
func (c *openedSource) grants(w *workshop.Workshop) (out []string) {
	if w == nil {
		return nil
	}
	workers := map[string][]string{}
	for _, l := range grant.Workshop(w, grant.Symbols) {
		imported := strings.Contains(l.Worker, "--")
		if imported || !slices.ContainsFunc(c.froms, func(from string) bool {
			name, of := strings.CutPrefix(l.At.Range.Filename, strings.TrimSuffix(from, "/")+"/")
			return of && c.Files[name] != nil
		}) {
			continue
		}
		text := string(l.Surface) + " " + l.Text
		if workers[text] == nil {
			out = append(out, text)
		}
		if !slices.Contains(workers[text], l.Worker) {
			workers[text] = append(workers[text], l.Worker)
		}
	}
	for i, text := range out {
		out[i] = strings.Join(workers[text], ", ") + " " + text
	}
	return out
}

// needsText is what imported workers need, as lines of YAML; "" for nothing. The loader
// has read the files.
func needsText(files source.Tree) string {
	text, ok := files["workshop.yaml"]
	if !ok {
		text = files["workshop.yml"]
	}
	var doc struct {
		Workshop struct {
			Needs any `yaml:"needs"`
		} `yaml:"workshop"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil || doc.Workshop.Needs == nil {
		return ""
	}
	out, err := yaml.Marshal(doc.Workshop.Needs)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(out), "\n")
}

// sourceFailure is an error of a source where no place of a file can be named.
func sourceFailure(err error) error {
	e, ok := errors.AsType[*workshop.SourceError](err)
	if !ok {
		return err
	}
	f := Fail(CodeRefused, "%s", e.Summary)
	if e.Hint != "" {
		f.Hint("%s", e.Hint)
	}
	return f
}
