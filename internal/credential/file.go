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

// Read reads the user's file, which others may neither read nor change, and which is no
// link: whoever could put one there would choose the hosts. A file that isn't there has no
// credentials.
func Read(name, home string) ([]Credential, diag.List, error) {
	named, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, nil, fmt.Errorf("%s is a symbolic link: write the file itself there", name)
	}
	f, err := boundedfile.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, nil, fmt.Errorf("%s was replaced while it was read", name)
	}
	if err := secretsource.Private(f); err != nil {
		return nil, nil, err
	}
	data, err := boundedfile.ReadOpen(f, MaxSize)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	out, list := Parse(name, data, home)
	return out, list, nil
}
