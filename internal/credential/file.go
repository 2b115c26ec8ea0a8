package credential

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/secretsource"
)

// Read reads the user's file as [Load] does, and parses it.
func Read(name, home string) ([]Credential, diag.List, error) {
	data, err := Load(name)
	if err != nil {
		return nil, nil, err
	}
	out, list := Parse(name, data, home)
	return out, list, nil
}

// Load returns the text of the user's file, which others may neither read nor change, and
// which is no link: whoever could put one there would choose the hosts. It is nil where
// there is no file, which has no credentials.
func Load(name string) ([]byte, error) {
	named, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link: write the file itself there", name)
	}
	f, err := boundedfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, fmt.Errorf("%s was replaced while it was read", name)
	}
	if err := secretsource.Private(f); err != nil {
		return nil, err
	}
	data, err := boundedfile.ReadOpen(f, MaxSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}
