package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"

	"github.com/llmdo/workshop/internal/secretsource"
)

const tokenCanary = "canary-of-a-token"

func credentialEnv(t *testing.T) *Env {
	t.Helper()
	home := t.TempDir()
	return &Env{Home: home, Dir: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
}

func typed(text string) func(context.Context, string) ([]byte, error) {
	return func(context.Context, string) ([]byte, error) { return []byte(text), nil }
}

// TestCredentialInKeyring: a value is stored before the file names it, is kept until a
// person says so, and no other credential loses it.
func TestCredentialInKeyring(t *testing.T) {
	keyring.MockInit()
	env := credentialEnv(t)
	in := func(entry string) string {
		v, _ := keyring.Get(secretsource.Service, entry)
		return v
	}
	// Nothing is typed, and there is no such entry.
	n := NewCredential{Name: "gitlab", Keyring: OwnEntry, Secret: typed("\n")}
	if _, err := env.AddCredential(t.Context(), n); err == nil || CodeOf(err) != CodeUsage || !strings.Contains(err.Error(), "no token was given") {
		t.Error(err)
	}
	// What no header can have.
	n.Secret = typed(tokenCanary + "\x1b[1m\n")
	if _, err := env.AddCredential(t.Context(), n); err == nil || strings.Contains(err.Error(), tokenCanary) {
		t.Error(err)
	}
	// An interrupt.
	n.Secret = func(context.Context, string) ([]byte, error) { return nil, ErrInterrupted }
	if _, err := env.AddCredential(t.Context(), n); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if _, err := os.Lstat(env.CredentialsFile()); err == nil || in("gitlab") != "" {
		t.Error("something was written")
	}
	n.Secret = typed(tokenCanary + "\n")
	added, err := env.AddCredential(t.Context(), n)
	if err != nil || added.Stored != "gitlab" || !added.New || in("gitlab") != tokenCanary {
		t.Errorf("%+v, %v, %q", added, err, in("gitlab"))
	}
	// Another one with the same entry, which stays as it is without a new value.
	added, err = env.AddCredential(t.Context(), NewCredential{Name: "gitlab-api", Keyring: "gitlab", Secret: typed("")})
	if err != nil || added.Stored != "" || in("gitlab") != tokenCanary {
		t.Errorf("%+v, %v", added, err)
	}
	text, err := os.ReadFile(env.CredentialsFile())
	if diff := cmp.Diff("gitlab: {keyring: gitlab, hosts: [gitlab.com], as: {basic: oauth2}}\ngitlab-api: {keyring: gitlab, hosts: [gitlab.com], as: bearer}\n", string(text)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if tested, err := env.TestCredential(t.Context(), "gitlab-api"); err != nil || len(tested.Headers) != 1 {
		t.Errorf("%+v, %v", tested, err)
	}
	if _, err := env.RemoveCredential(t.Context(), "gitlab", true); CodeOf(err) != CodeRefused || in("gitlab") == "" {
		t.Error(err)
	}
	if r, err := env.RemoveCredential(t.Context(), "gitlab", false); err != nil || !r.Kept || in("gitlab") == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := env.RemoveCredential(t.Context(), "gitlab-api", true); err != nil || r.Kept || in("gitlab") != "" {
		t.Errorf("%+v, %v", r, err)
	}
	// Locked, or none there.
	keyring.MockInitWithError(errors.New("it is locked"))
	n.Secret = typed(tokenCanary)
	_, err = env.AddCredential(t.Context(), n)
	if err == nil || !strings.Contains(err.Error(), "it is locked; nothing was written") {
		t.Error(err)
	}
	if text, err := os.ReadFile(env.CredentialsFile()); len(text) > 0 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCredentialsFileChanged: what somebody else writes at the same time isn't lost.
func TestCredentialsFileChanged(t *testing.T) {
	keyring.MockInit()
	env := credentialEnv(t)
	const theirs = "mine: {env: MINE, hosts: [h.example]}\n"
	_, err := env.AddCredential(t.Context(), NewCredential{Name: "npm", Keyring: OwnEntry, Secret: func(context.Context, string) ([]byte, error) {
		if err := os.MkdirAll(filepath.Dir(env.CredentialsFile()), 0o700); err != nil {
			return nil, err
		}
		return []byte(tokenCanary), os.WriteFile(env.CredentialsFile(), []byte(theirs), 0o600)
	}})
	if err == nil || !strings.Contains(err.Error(), "was changed by another program; nothing was written") {
		t.Error(err)
	}
	if text, err := os.ReadFile(env.CredentialsFile()); string(text) != theirs || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
