package initbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// download returns the directory of the module's version, whose files have its hash.
func (t *toolchain) download(ctx context.Context, s source) (string, error) {
	out, err := t.run(ctx, t.clean, "mod", "download", "-json", module+"@"+s.Version)
	if err != nil {
		return "", err
	}
	var m struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	if m.Sum != s.Sum {
		return "", fmt.Errorf("%s has the hash %s, and this program was built from %s", s, m.Sum, s.Sum)
	}
	have, err := dirhash.HashDir(m.Dir, module+"@"+s.Version, dirhash.Hash1)
	if err != nil {
		return "", err
	}
	if have != s.Sum {
		return "", fmt.Errorf("%s was changed since it was downloaded: run `go clean -modcache`", m.Dir)
	}
	return m.Dir, nil
}

// unchanged refuses a checkout of which a file changed after this program was linked, or
// that somebody else can write to. It looks at what the build reads, and its directories.
func (t *toolchain) unchanged(ctx context.Context, s source, arch string) error {
	if _, err := os.Stat(filepath.Join(s.Dir, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the source of this program is no longer in %s: %s", s.Dir, again)
	}
	asked := *t
	asked.env = append(asked.env[:len(asked.env):len(asked.env)], "GOOS=linux", "GOARCH="+arch)
	out, err := asked.run(ctx, s.Dir, "list", "-mod=readonly", "-deps", "-tags", initimage.BuildTags, "-json=Dir,GoFiles,SFiles,HFiles,OtherFiles,EmbedFiles", program)
	if err != nil {
		return fmt.Errorf("workshop-init can't be built: %w", err)
	}
	files, err := filesBelow(s.Dir, out)
	if err != nil {
		return err
	}
	for _, name := range append(files, "go.mod", "go.sum") {
		name = filepath.Join(s.Dir, name)
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		if changed(info).After(s.Linked) {
			return fmt.Errorf("%s changed after this program was built from it: %s", name, again)
		}
		uid, _, known := fileowner.Of(info)
		if info.Mode()&fs.ModeSymlink != 0 || known && (uid != 0 && uid != os.Geteuid() || info.Mode().Perm()&0o002 != 0) {
			return fmt.Errorf("%s is a link, of another user, or others can write to it: run `make build` there, and use bin/workshop", name)
		}
	}
	return nil
}

const again = "run `go install ./cmd/workshop` in a checkout again"

// filesBelow are the files and directories below a directory that `go list` names,
// relative to it.
func filesBelow(dir string, list []byte) (names []string, err error) {
	d := json.NewDecoder(bytes.NewReader(list))
	for {
		var p struct {
			Dir                                             string
			GoFiles, SFiles, HFiles, OtherFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		rel, err := filepath.Rel(dir, p.Dir)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		names = append(names, rel)
		for _, list := range [][]string{p.GoFiles, p.SFiles, p.HFiles, p.OtherFiles, p.EmbedFiles} {
			for _, name := range list {
				names = append(names, filepath.Join(rel, name))
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("go list names no file in %s", dir)
	}
	return names, nil
}
