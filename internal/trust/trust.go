package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// Rules are the rules of approvals that a user agreed to, by the real path of each
// workshop.yaml. dir is that of the user's settings.
func Rules[T comparable](dir string) List[T] {
	return List[T]{Path: filepath.Join(dir, "approved.json"), Key: "files"}
}

// Source is one commit of a source.
type Source struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`             // h1:…
	Signer string `json:"signer,omitempty"` // the key's fingerprint; "" where nobody signed
}

// Sources are those that a user agreed to, by what they are named in workshop.lock. dir is
// that of the user's state.
func Sources(dir string) List[Source] {
	return List[Source]{Path: filepath.Join(dir, "sources.json"), Key: "sources"}
}

// Credential is one line of a workshop that may have one of the user's credentials.
type Credential struct {
	Name string `json:"credential"`
	Line string `json:"line"` // with the worker that has it
}

// Credentials are those that a user agreed to, by the real directory of each project. dir is
// that of the user's state.
func Credentials(dir string) List[Credential] {
	return List[Credential]{Path: filepath.Join(dir, "credentials.json"), Key: "projects"}
}

// Builds are the builds that a user agreed to, by the digest of all that goes into each.
type Builds struct {
	Dir string // of the user's state
}

// file is the one whose existence says that a digest was agreed to.
func (b Builds) file(digest string) (string, error) {
	if b.Dir == "" {
		return "", errors.New("there is no directory of the user's state")
	}
	name := strings.ReplaceAll(digest, ":", "-")
	if !filepath.IsLocal(name) || name == "." || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("%q is not a digest", digest)
	}
	return filepath.Join(b.Dir, "builds", name), nil
}

// Has reports whether a build was agreed to.
func (b Builds) Has(digest string) (bool, error) {
	file, err := b.file(digest)
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Add keeps that a build was agreed to at a time; about is for people.
func (b Builds) Add(digest, about string, at time.Time) error {
	file, err := b.file(digest)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(file, fmt.Appendf(nil, "%s %s\n", at.UTC().Format(time.RFC3339), about), 0o600)
}
