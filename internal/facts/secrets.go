package facts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// maxSecret is the largest secret, as in Compose and Swarm (500 KB), rounded up.
const maxSecret = 512 << 10

func hasSecrets(w *workshop.Workshop) bool {
	return slices.ContainsFunc(w.Workers, func(w workshop.Worker) bool { return len(w.Container.Secrets) > 0 })
}

// secrets reads the value of each secret, and chooses a file for it that only the
// worker's user may read, one per user. The value is stored nowhere else (B11).
func (c *collector) secrets(dir string) {
	c.facts.SecretFiles = map[string]string{}
	for i := range c.o.Workshop.Workers {
		w := &c.o.Workshop.Workers[i]
		for j := range w.Container.Secrets {
			s := &w.Container.Secrets[j]
			key := s.Name + "@" + c.users[w.Name]
			if _, done := c.facts.SecretFiles[key]; !done {
				c.secret(dir, s, key)
			}
		}
	}
}

func (c *collector) secret(dir string, s *workshop.Secret, key string) {
	value, err := c.secretValue(s)
	if err != nil {
		c.problem("secret-unreadable", s.At.Range, fmt.Sprintf("secret %s: %v", s.Name, err), "")
		return
	}
	if value == nil {
		return // reported by WithFacts
	}
	file := secretFile(filepath.Join(dir, "secret-"+strings.ReplaceAll(strings.ReplaceAll(key, "@", "-"), ":", "-")), value)
	c.facts.SecretFiles[key] = file
	c.missing.secrets = append(c.missing.secrets, secretToWrite{s, file, value, key[strings.LastIndexByte(key, '@')+1:]})
}

// secretFile returns the file of a value: the one that already has it, else the next
// one that doesn't exist. So a changed value changes the worker's mounts, and `up`
// recreates the worker; if the file were replaced, a running worker would keep the old
// value. Former values are removed by `down`, as other workers may still have them
// bound.
func secretFile(base string, value []byte) string {
	name := base
	for n := 2; ; n++ {
		have, err := boundedfile.Read(name, maxSecret)
		if err != nil || bytes.Equal(have, value) {
			return name
		}
		name = base + "." + strconv.Itoa(n)
	}
}

// secretValue returns nil if there is no value.
func (c *collector) secretValue(s *workshop.Secret) ([]byte, error) {
	if s.Env != "" {
		if v, ok := c.o.lookup(s.Env); ok {
			return []byte(v), nil
		}
		return nil, nil
	}
	f, err := c.openSecret(s.File.V)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", s.File.V)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s is larger than %d bytes", s.File.V, maxSecret)
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// openSecret opens the file of a secret. A path in the project must stay in the
// project, and a path that leads into a directory that a worker writes to, also by links
// elsewhere, must stay there: a worker could replace it by a link to any file of the
// caller at any moment (B7, B45). Elsewhere links are followed.
func (c *collector) openSecret(p string) (*os.File, error) {
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.facts.ProjectDir, p)
	}
	p = filepath.Clean(p)
	end, err := hostlink.Follow(p, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if why := c.refused(p, end); why != "" {
		return nil, fmt.Errorf("%s %s, which a worker never gets (B7): put the value into a separate file, or use env: VARIABLE", p, why)
	}
	within := [][2]string{{c.facts.ProjectDir, c.facts.ProjectDir}}
	written := map[string]bool{}
	for _, u := range c.uses() {
		if sf := c.facts.Sources[u.source]; u.readWrite && sf.Dir {
			within, written[sf.Real] = append(within, [2]string{c.abs(u.source), sf.Real}), true
		}
	}
	dir, below, err := hostlink.Until(p, func(part string) bool { return written[part] })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if below != "" && (subpath.Within(dir, c.facts.ProjectDir) || !subpath.Within(p, c.facts.ProjectDir)) {
		return openBelow(dir, dir, below)
	}
	for _, w := range within {
		if name, err := filepath.Rel(w[0], p); err == nil && filepath.IsLocal(name) {
			return openBelow(w[0], w[1], name)
		}
	}
	return boundedfile.Open(p)
}

// openBelow opens a file of a directory, which has a name in the file.
func openBelow(shown, dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := boundedfile.OpenIn(root, filepath.FromSlash(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: the file and the targets of symbolic links in its path must be in %s; otherwise use its real path", err, shown)
	}
	return f, err
}

// refused returns why no worker gets a path, by its name or by its target, real; "" if
// it isn't refused.
func (c *collector) refused(p, real string) string {
	why := cmp.Or(c.facts.Refusal(p), c.facts.Refusal(real))
	if why == "" && c.names != nil {
		why = c.names.why(real)
	}
	return why
}
