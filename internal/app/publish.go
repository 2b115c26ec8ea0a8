package app

import (
	"context"
	"errors"
	"strings"

	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/source"
)

// PublishOptions say where a workshop is published.
type PublishOptions struct {
	Ref     string // REGISTRY/REPOSITORY:TAG
	DryRun  bool   // contact nobody
	SignKey string // file of the SSH key that signs; "" for none
	// Ask puts a yes-or-no question to a person; nil if nobody is there.
	Ask func(context.Context, string) (bool, error)
}

// PublishResult is what was published, or would be.
type PublishResult struct {
	File string // as the user would write it
	From string // its address for others
	Tag  string
	// Base reports whether others extend it; else they import it, by Name.
	Base bool
	Name string
	// Files by their names.
	Files  source.Tree
	Tree   string // h1:…
	Digest string // of the manifest
	Commit string // that it is of
	Key    string // fingerprint of the key that signed; "" for none
	source.Published
}

// Range is the range of versions that others write: what is compatible with this one.
func (r PublishResult) Range() string { return source.RangeOf(r.Tag) }

// Publish puts the workshop into a registry: the files that it is read from, as they are
// committed. What others would get and the publisher didn't mean is refused.
func (env *Env) Publish(ctx context.Context, o PublishOptions) (PublishResult, error) {
	id, tag, err := publishRef(o.Ref)
	if err != nil {
		return PublishResult{}, err
	}
	s, err := env.loadForLock(ctx)
	if err != nil {
		return PublishResult{}, err
	}
	if err := env.reviewSource(ctx, s, UpOptions{DryRun: o.DryRun, Ask: o.Ask}); err != nil {
		return PublishResult{}, err
	}
	r := PublishResult{File: env.Shown(s.Path), From: id.From(), Tag: tag, Base: !s.Workshop.Needs, Name: s.Workshop.Name.V}
	if v := s.Workshop.Version.V; v != "" && strings.TrimPrefix(v, "v") != strings.TrimPrefix(tag, "v") {
		return r, Fail(CodeUsage, "%s has the version %s, and the tag is %s", r.File, v, tag).Hint("change one of them, and commit it: both are what others see")
	}
	if r.Files, r.Commit, err = env.committed(ctx, s); err != nil {
		return r, err
	}
	if err := env.checkShared(ctx, s, id, r.Files); err != nil {
		return r, err
	}
	artifact, err := source.Pack(r.Files, tag)
	if err == nil {
		r.Tree, err = r.Files.Hash()
	}
	if err != nil {
		return r, Fail(CodeRefused, "%s can't be published: %w", r.File, err)
	}
	if r.Digest = artifact.Digest(); o.DryRun {
		return r, nil
	}
	var signature []byte
	if o.SignKey != "" {
		env.say("signing with %s: ssh-keygen may ask for its passphrase, or to touch it", o.SignKey)
		if signature, r.Key, err = source.Sign(ctx, env.Abs(o.SignKey), r.Digest); err != nil {
			return r, signFailure(ctx, o.SignKey, err)
		}
	}
	r.Published, err = source.Publish(ctx, id, artifact, signature)
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.Is(err, source.ErrOtherContent):
		return r, Fail(CodeRefused, "%w; nothing was published", err).Hint("publish it as a new version: who uses this one must get what it was")
	case err != nil:
		return r, Fail(CodeFailed, "%w", err)
	}
	return r, nil
}

// publishRef reads REGISTRY/REPOSITORY:TAG.
func publishRef(text string) (source.ID, string, error) {
	name := strings.TrimPrefix(text, "oci://")
	at := strings.LastIndexByte(name, ':')
	if at < strings.LastIndexByte(name, '/') {
		at = -1
	}
	if at < 0 {
		return source.ID{}, "", Fail(CodeUsage, "%q has no tag", text).Hint("write REGISTRY/REPOSITORY:VERSION, such as %s:v1.0.0", shellquote.Quote(name))
	}
	id, err := source.ParseID("oci://" + name[:at])
	if err != nil {
		return id, "", Fail(CodeUsage, "%w", err)
	}
	tag := name[at+1:]
	if !source.IsRelease(tag) || !image.IsTag(tag) {
		return id, "", Fail(CodeUsage, "the tag %q is not a version", tag).Hint("write MAJOR.MINOR.PATCH, such as %s:v1.0.0", shellquote.Quote(name[:at]))
	}
	return id, tag, nil
}

func signFailure(ctx context.Context, key string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := Fail(CodeFailed, "sign with %s: %w; nothing was published", key, err)
	if errors.Is(err, source.ErrNoKeygen) {
		return f.Hint("install OpenSSH, 8.2 or newer, or leave --sign-key out")
	}
	return f.Hint("--sign-key takes the file of an SSH key, or of the public key whose other half an agent has (ssh-add)")
}
