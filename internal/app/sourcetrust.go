package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/internal/trust"
)

// SourceRequest is a source that a person is asked about.
type SourceRequest struct {
	// Stage is what happens after a yes.
	Stage SourceStage
	ID    string
	From  string
	// Version is the range that is wanted; empty: the newest release.
	Version     string
	Ref, Commit string // empty at [StageAsk]
	// Signer says who signed it.
	Signer string
	// Unpublished: no branch or tag of the source points at the commit. Known only where
	// the settings allow the source.
	Unpublished bool
	// Files, Needs and Grants are known at [StageUse] alone: the number of files, what
	// imported workers need, as lines of YAML, and what a base grants, in words.
	Files  int
	Needs  string
	Grants []string
}

// SourceStage is what a yes is for.
type SourceStage int

// The stages: its server is asked for releases; one that a lock has is fetched; what was
// fetched is used.
const (
	StageAsk SourceStage = iota
	StageFetch
	StageUse
)

// acceptedSources are what this user agreed to before; none where there is no directory
// for it.
func (env *Env) acceptedSources(id source.ID) ([]trust.Source, error) {
	dir := env.StateDir()
	if dir == "" {
		return nil, nil
	}
	return trust.Sources(dir).Of(id.String())
}

// keepAccepted notes that a user agreed to a commit, and the key that was seen to have
// signed it; "" for none.
func (env *Env) keepAccepted(id source.ID, l source.Locked, key string) error {
	dir := env.StateDir()
	if dir == "" {
		return Fail(CodeFailed, "no directory for what you agree to: neither HOME nor XDG_STATE_HOME is set")
	}
	return trust.Sources(dir).Add(id.String(), trust.Source{Commit: l.Commit, Tree: l.Tree, Signer: key})
}

// isLocked reports whether what was accepted is what a lock has: the content counts,
// whoever is said to have signed it.
func isLocked(l source.Locked) func(trust.Source) bool {
	return func(t trust.Source) bool { return t.Commit == l.Commit && t.Tree == l.Tree }
}

// agreed reports whether the settings say that nobody need be asked about a source. They
// don't where a worker may have written that it is needed (B8).
func (s *sources) agreed(id source.ID) (bool, error) {
	settings, err := s.said()
	return err == nil && settings.Agreed(id.String()) && (s.suspect == nil || !s.suspect()), err
}

// mayFetch asks whether what a lock has may be fetched, once per commit. Settings that allow
// a source agree to what it published, and not to any commit that its server has: those of
// forks and of requests to merge have the same address on many.
func (s *sources) mayFetch(ctx context.Context, id source.ID, l source.Locked) error {
	list, err := s.env.acceptedSources(id)
	if err != nil {
		return noSource("source-refused", "%s", err)
	}
	if slices.ContainsFunc(list, isLocked(l)) {
		return nil
	}
	agreed, err := s.agreed(id)
	if err != nil {
		return err
	}
	if agreed {
		published, err := source.IsPublished(ctx, id, l)
		if err != nil {
			return notReached(err)
		}
		if published {
			return nil
		}
		if s.env.AgreeSources == nil {
			return withHint(noSource("source-refused", "your settings allow %s, but no branch or tag of it points at the commit %s that %s has, and nobody is there to ask", id, l.Commit, s.lockName),
				"%s was moved, or somebody else's commit was written into the lock: look who changed it; `workshop update` takes what the source has now, and a yes to `workshop up` in a terminal this commit", l.Ref)
		}
	}
	signer := "nobody, by " + s.lockName
	if l.Signed != nil {
		signer = l.Signed.String() + ", by " + s.lockName
	}
	err = s.ask(ctx, SourceRequest{Stage: StageFetch, ID: id.String(), From: id.From(), Version: l.Original, Ref: l.Ref, Commit: l.Commit, Signer: signer, Unpublished: agreed})
	if err != nil {
		return err
	}
	if err := s.env.keepAccepted(id, l, ""); err != nil {
		return noSource("source-refused", "%s", err)
	}
	return nil
}

// ask asks a person about sources; anything but a yes is a refusal.
func (s *sources) ask(ctx context.Context, all ...SourceRequest) error {
	names, allow := make([]string, len(all)), make([]string, len(all))
	for i, r := range all {
		names[i] = r.ID
		allow[i], _, _ = strings.Cut(r.ID, "//")
	}
	what := strings.Join(names, ", ")
	if s.env.AgreeSources == nil && s.resolve != nil && !s.resolve.yes && s.allAgreed(all) {
		return withHint(noSource("source-refused", "nobody is there to agree to %s", what), "--yes agrees to what your settings allow")
	}
	if s.env.AgreeSources == nil {
		return withHint(noSource("source-refused", "nobody agreed to %s on this machine, and nobody is there to ask; nothing was fetched", what),
			"run it in a terminal, or write `sources: {allow: [%s]}` into your settings file", strings.Join(allow, ", "))
	}
	yes, err := s.env.AgreeSources(ctx, all)
	if err != nil {
		return err
	}
	if !yes {
		return noSource("source-refused", "%s was declined", what)
	}
	return nil
}

// allAgreed reports whether the settings allow all of them.
func (s *sources) allAgreed(all []SourceRequest) bool {
	return !slices.ContainsFunc(all, func(r SourceRequest) bool {
		id, err := source.ParseID(r.From)
		ok, failed := s.agreed(id)
		return err != nil || failed != nil || !ok
	})
}

// signers are the keys of each file of signers that the settings name, of which each must
// have signed.
func (s *sources) signers() ([]source.Signers, error) {
	settings, err := s.said()
	if err != nil {
		return nil, err
	}
	return signersOf(settings)
}

func signersOf(settings trust.Settings) (out []source.Signers, err error) {
	for _, file := range settings.SignerFiles() {
		text, err := boundedfile.Read(file, maxSettings)
		if err != nil {
			return nil, Fail(CodeRefused, "the signers can't be read: %w", err)
		}
		all, err := source.ParseSigners(text)
		if err != nil {
			return nil, Fail(CodeRefused, "the signers of %s can't be read: %w", file, err)
		}
		out = append(out, all)
	}
	return out, nil
}

// signedAsAccepted reports whether this user's record says that all signers know who
// signed what a lock has. What the lock says of that is the repository's word.
func (env *Env) signedAsAccepted(id source.ID, l source.Locked, required []source.Signers) (bool, error) {
	list, err := env.acceptedSources(id)
	return slices.ContainsFunc(list, func(t trust.Source) bool {
		return isLocked(l)(t) && !slices.ContainsFunc(required, func(all source.Signers) bool {
			_, err := all.Has(id, t.Signer, time.Now())
			return err != nil
		})
	}), err
}

// verified refuses a source that isn't signed as the settings want it. What this user's
// record doesn't have is looked up: its tag is fetched.
func (s *sources) verified(ctx context.Context, id source.ID, l source.Locked) error {
	refuse := func(err error) error { return noSource("source-refused", "%s", err) }
	required, err := s.signers()
	if err != nil {
		return refuse(err)
	}
	if ok, err := s.env.signedAsAccepted(id, l, required); err != nil || len(required) == 0 || ok {
		if err != nil {
			return refuse(err)
		}
		return nil
	}
	if s.env.Offline {
		return withHint(noSource("source-refused", "who signed %s of %s isn't known on this machine, and --offline asks nobody", l.Ref, id), "run it once without --offline")
	}
	if err := s.mayFetch(ctx, id, l); err != nil {
		return err
	}
	tree, who, err := source.Verify(ctx, id, l, required)
	if err != nil {
		if _, is := errors.AsType[*source.SignatureError](err); is {
			settings, _ := s.said()
			return noSource("source-refused", "%s; it must be signed by a key of %s", err, wantedSigners(settings))
		}
		return s.notOpened(err, true)
	}
	if l.Signed != nil && l.Signed.Key != who.Key {
		return noSource("source-refused", "%s: by %s %s is signed by %s, and it is by %s", id, s.lockName, l.Ref, l.Signed, who)
	}
	if err := errors.Join(s.env.sourceCache().Put(tree), s.env.keepAccepted(id, l, who.Key)); err != nil {
		return refuse(err)
	}
	return nil
}

// wantedSigners are the files of signers, in words.
func wantedSigners(settings trust.Settings) string {
	return strings.Join(settings.SignerFiles(), " and of one of ")
}

// sourcesSigned refuses a workshop with a source of which this user's record doesn't say
// that it is signed as the settings want it.
func (env *Env) sourcesSigned(s *Source, settings trust.Settings) error {
	required, err := signersOf(settings)
	if err != nil || len(required) == 0 {
		return err
	}
	for _, o := range s.usedSources() {
		if ok, err := env.signedAsAccepted(o.id, o.Locked, required); err != nil || !ok {
			if err != nil {
				return Fail(CodeRefused, "%w", err)
			}
			return Fail(CodeRefused, "who signed %s of %s isn't known on this machine, and the settings want a key of %s", o.Ref, o.id, wantedSigners(settings)).
				Hint("`workshop up`, or `workshop lock`, looks it up")
		}
	}
	return nil
}
