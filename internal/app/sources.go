package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
)

// sources opens what the files of a workshop extend and import, as its lock has it, once:
// whatever becomes of the lock, the vendor directory, the cache or the source itself
// meanwhile, the workshop is made of what was opened (B46).
type sources struct {
	env     *Env
	project fs.FS // its root has the vendor directory; nil: what it has counts as in also
	also    []fs.FS
	lock    *lock.Lock
	// lockName is the lock as messages name it; unread: there is one that can't be read.
	lockName string
	unread   bool
	// fetch: what the lock has is fetched where it isn't there. resolve: what the lock
	// doesn't have is looked up; nil: it is an error.
	fetch   bool
	resolve *resolver
	// suspect reports whether a worker may have written what names the sources (B8).
	suspect func() bool

	opened   map[string]*openedSource // by IDs
	failed   map[string]error         // why a source can't be had, so that nobody is asked twice
	settings *trust.Settings
}

// openedSource is a source whose files are in memory.
type openedSource struct {
	source.Release
	id    source.ID
	froms []string // its address as files have it
}

func noSource(code, format string, args ...any) *workshop.SourceError {
	return &workshop.SourceError{Code: code, Summary: fmt.Sprintf(format, args...)}
}

// withHint adds what to do.
func withHint(e *workshop.SourceError, format string, args ...any) *workshop.SourceError {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// markedAt marks another place than the source's address.
func markedAt(e *workshop.SourceError, where diag.Range) *workshop.SourceError {
	e.At = where
	return e
}

// open is [workshop.Options].OpenSource.
func (s *sources) open(ctx context.Context, ref workshop.SourceRef) (workshop.SourceFiles, error) {
	got, err := s.find(ctx, ref)
	if err != nil {
		return workshop.SourceFiles{}, err
	}
	return workshop.SourceFiles{ID: got.id.String(), Commit: got.Commit, Files: got.Files.FS()}, nil
}

func (s *sources) find(ctx context.Context, ref workshop.SourceRef) (*openedSource, error) {
	id, err := source.ParseID(ref.From)
	if err != nil {
		return nil, withHint(noSource("bad-source", "%s", err), "its address is one like git+https://HOST/PATH//DIRECTORY, and its version a key beside it")
	}
	version, err := source.ParseVersion(ref.Version)
	if err != nil {
		return nil, withHint(markedAt(noSource("bad-source", "%s", err), ref.VersionAt), "write `version: ^1.4` for the newest release that is compatible with 1.4")
	}
	settings, err := s.said()
	if err != nil {
		return nil, noSource("source-refused", "%s", err)
	}
	if err := settings.Permits(id.String()); err != nil {
		return nil, noSource("source-refused", "%s", err)
	}
	got := s.opened[id.String()]
	if err := s.failed[id.String()]; err != nil {
		return nil, err
	}
	switch {
	case s.resolve != nil:
		got, err = s.resolved(ctx, id, version, ref, got)
	case got != nil:
		err = s.fits(id, version, ref, got.Locked)
	default:
		got, err = s.locked(ctx, id, version, ref)
	}
	if err != nil {
		return nil, err
	}
	if s.opened[id.String()] = got; !slices.Contains(got.froms, ref.From) {
		got.froms = append(got.froms, ref.From)
	}
	return got, nil
}

// text is a file of a source by the name that positions have, which begins with the source's
// address; nil where it isn't there.
func (s *sources) text(name string) (text []byte) {
	nearest := 0 // one address may begin another
	for _, o := range s.opened {
		for _, from := range o.froms {
			file, of := strings.CutPrefix(name, strings.TrimSuffix(from, "/")+"/")
			if data, err := boundedfile.ReadFS(o.Files.FS(), file, workshop.MaxFileSize); of && err == nil && len(from) > nearest {
				text, nearest = data, len(from)
			}
		}
	}
	return text
}

// said are the settings, read once.
func (s *sources) said() (trust.Settings, error) {
	if s.settings == nil {
		got, err := s.env.SourceSettings()
		if err != nil {
			return got, err
		}
		s.settings = &got
	}
	return *s.settings, nil
}

// locked opens what the lock has of a source.
func (s *sources) locked(ctx context.Context, id source.ID, v source.Version, ref workshop.SourceRef) (*openedSource, error) {
	if s.unread {
		return nil, withHint(noSource("source-not-locked", "which commit of %s is meant isn't known, as %s can't be read", id, s.lockName), "run `workshop lock`")
	}
	l, known := s.entry(id)
	if !known {
		return nil, withHint(noSource("source-not-locked", "%s isn't in %s, so which commit of it is meant isn't known", id, s.lockName), "run `workshop lock`, and review what it adds")
	}
	if err := s.fits(id, v, ref, l); err != nil {
		return nil, err
	}
	files, err := s.files(ctx, id, l)
	if err != nil {
		s.failed[id.String()] = err
		return nil, err
	}
	return &openedSource{id: id, Release: source.Release{Locked: l, Files: files}}, nil
}

// entry is what the lock has of a source.
func (s *sources) entry(id source.ID) (source.Locked, bool) {
	if s.lock == nil {
		return source.Locked{}, false
	}
	l, ok := s.lock.Sources[id.String()]
	return l.Locked, ok
}

// fits refuses what is locked where a file wants something else.
func (s *sources) fits(id source.ID, v source.Version, ref workshop.SourceRef, l source.Locked) error {
	if !v.Allows(l.Ref, l.Commit) {
		return withHint(markedAt(noSource("source-not-locked", "%s has %s of %s (%s), which isn't %s", s.lockName, l.Ref, id, clip.Bytes(l.Commit, shownCommit), versionText(v)), ref.VersionAt),
			"run `workshop update %s`, and review what it changes", shellquote.Quote(id.String()))
	}
	if ref.Signer != "" && (l.Signed == nil || l.Signed.Key != ref.Signer) {
		return withHint(markedAt(noSource("source-refused", "%s must be signed by %s; by %s, %s was signed by %s", id, clip.Bytes(ref.Signer, 60), s.lockName, l.Ref, signerText(l.Signed)), ref.SignerAt),
			"if its key is another one now, change `signer`, and run `workshop lock`")
	}
	return nil
}

// lockedAs is what a lock has of a source that is used.
func (s *sources) lockedAs(used workshop.UsedSource) lock.Source {
	l := lock.Source{Locked: s.opened[used.ID].Locked, Via: used.Via}
	l.Original = used.Original
	return l
}

// usedSources are the sources that a workshop was loaded from, in order of their IDs.
func (s *Source) usedSources() (out []*openedSource) {
	for _, used := range s.Workshop.Sources {
		out = append(out, s.from.opened[used.ID])
	}
	return out
}

// shownCommit is enough of a commit to tell two apart, in bytes.
const shownCommit = 12

func versionText(v source.Version) string {
	if v.String() == "" {
		return "a release"
	}
	return v.String()
}

// signerText is who signed, in words.
func signerText(s *source.Signer) string {
	if s == nil {
		return "nobody who is known"
	}
	return s.String()
}

// sourceCache keeps what was fetched, for all projects of the user.
func (env *Env) sourceCache() source.Cache {
	if dir := env.CacheDir(); dir != "" {
		return source.Cache{Dir: filepath.Join(dir, "sources")}
	}
	return source.Cache{}
}

// files returns the tree that a lock has: from the vendor directory, the cache, or, where
// that is meant to be, the source itself.
func (s *sources) files(ctx context.Context, id source.ID, l source.Locked) (source.Tree, error) {
	if s.fetch {
		if err := s.verified(ctx, id, l); err != nil {
			return nil, err
		}
	}
	contacted := false
	store := source.Store{Project: s.project, Also: s.also, Cache: s.env.sourceCache(), Offline: !s.fetch || s.env.Offline, Accepted: func(source.ID, source.Locked) error {
		contacted = true
		return s.mayFetch(ctx, id, l)
	}}
	tree, err := store.Open(ctx, id, l)
	if err != nil {
		return nil, s.notOpened(err, contacted)
	}
	return tree, nil
}

// notOpened says why a tree wasn't opened.
func (s *sources) notOpened(err error, contacted bool) error {
	if _, said := errors.AsType[*workshop.SourceError](err); said {
		return err
	}
	_, changed := errors.AsType[*source.ChangedError](err)
	switch {
	case errors.Is(err, source.ErrOffline) && s.env.Offline:
		return withHint(noSource("source-missing", "%s", err), "run it without --offline where the source can be reached")
	case errors.Is(err, source.ErrOffline):
		return withHint(noSource("source-missing", "%s", err), "`workshop vendor` fetches it into the project, `workshop up` into the cache")
	case errors.Is(err, source.ErrVendored):
		return withHint(noSource("source-changed", "%s", err), "if the lock is newer, run `workshop vendor`; else `git status .workshop` shows what was changed")
	case changed && contacted:
		return withHint(noSource("source-changed", "%s", err), "what was reviewed isn't there any more: ask those who keep the source")
	case changed || !contacted:
		return withHint(noSource("source-changed", "%s", err), "look who changed it; what is removed is fetched again")
	}
	return notReached(err)
}

// notReached says why a source has no answer.
func notReached(err error) error {
	e := noSource("source-not-fetched", "%s", err)
	said := ""
	if failed, is := errors.AsType[*git.Error](err); is {
		said = strings.ToLower(failed.Said)
	}
	says := func(any ...string) bool {
		return slices.ContainsFunc(any, func(text string) bool { return strings.Contains(said, text) })
	}
	switch {
	case errors.Is(err, git.ErrNoGit):
		return withHint(e, "install git: sources are read by it")
	case errors.Is(err, git.ErrNoDirectory):
		return withHint(e, "behind // stands a directory of the repository that has a workshop.yaml")
	case says("resolve host"):
		return withHint(e, "check the name of its host")
	case says("terminal prompts disabled", "authentication failed", "permission denied", "returned error: 401", "returned error: 403"):
		return withHint(e, "git has no credentials that its server takes; `git ls-remote` must work without a question, by a credential helper or a key of ssh")
	case says("not found"):
		return withHint(e, "check its address; what is private needs credentials in git's own configuration")
	}
	return withHint(e, "run it again where the source can be reached; credentials are those of git, or of `docker login`")
}

// sourcesFor makes what opens the sources of a file that is read.
func (env *Env) sourcesFor(s *Source) *sources {
	out := &sources{
		env: env, project: ProjectDir(s.Root()), lock: s.lock, lockName: s.ShownFile(lock.FileOf(s.Base())), unread: len(s.lockProblems) > 0 && !env.RepairLock,
		fetch: env.fetches, resolve: env.resolver, opened: map[string]*openedSource{}, failed: map[string]error{},
		suspect: func() bool {
			list, err := env.redefined("", s.definition())
			return err != nil || len(list) > 0
		},
	}
	if env.resolver != nil || env.vendors {
		out.project, out.also = nil, []fs.FS{out.project}
	}
	return out
}

// sourcesOf makes what opens the sources of a workshop file whose project is a file
// system, by the lock next to it. Nothing is fetched.
func (env *Env) sourcesOf(fsys fs.FS, file string) (*sources, error) {
	project, err := fs.Sub(fsys, path.Dir(file))
	if err != nil {
		return nil, err
	}
	at := Source{Path: path.Base(file)}
	at.readLock(project, false)
	return &sources{env: env, project: project, lock: at.lock, lockName: lock.FileOf(path.Base(file)), unread: len(at.lockProblems) > 0, opened: map[string]*openedSource{}, failed: map[string]error{}}, nil
}
