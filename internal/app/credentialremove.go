package app

import (
	"context"
	"errors"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/secretsource"
)

// RemovedCredential is what was removed.
type RemovedCredential struct {
	CredentialInfo
	File string // as the user would write it
	// Entry of the keyring; Kept reports whether it is still there.
	Entry string
	Kept  bool
}

// RemoveCredential removes an entry of the user's file, and with alsoKeyring its value in
// the keyring.
func (env *Env) RemoveCredential(ctx context.Context, name string, alsoKeyring bool) (RemovedCredential, error) {
	none := RemovedCredential{}
	f, err := env.readCredentials()
	if err != nil {
		return none, err
	}
	c, err := f.named(name)
	if err != nil {
		return none, err
	}
	entry := c.Source.Keyring
	if alsoKeyring && entry == "" {
		return none, Fail(CodeUsage, "%s: the credential %s has no entry in the keyring: its source is %s", f.place(c), name, c.Source)
	}
	for _, other := range f.all {
		if alsoKeyring && other.Name != name && other.Source.Keyring == entry {
			return none, Fail(CodeRefused, "%s: the credential %s has the same entry %s in the keyring", f.place(other), other.Name, entry).
				Hint("`workshop credential remove %s` keeps the entry", name)
		}
	}
	text, err := credential.Remove(f.text, env.Home, name)
	if err != nil {
		return none, f.unedited(err)
	}
	if err := f.write(text); err != nil {
		return none, err
	}
	r := RemovedCredential{CredentialInfo: credentialInfo(c), File: f.shown, Entry: entry, Kept: entry != "" && !alsoKeyring}
	if alsoKeyring {
		err := secretsource.Delete(ctx, entry)
		if err != nil && !errors.Is(err, secretsource.NoEntryError(entry)) {
			return r, Fail(CodeFailed, "%s has no credential %s any more, and the keyring may still have its value: %w", f.shown, name, err).
				Hint("remove the entry %s of %s by the keyring's own program", entry, secretsource.Service)
		}
	}
	return r, nil
}
