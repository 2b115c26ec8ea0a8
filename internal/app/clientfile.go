package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/mcpconfig"
)

// ClientEntry is a server in the file of an MCP client, next to the workshop file.
type ClientEntry struct {
	Client  mcpconfig.Client
	Name    string
	Server  mcpconfig.Server
	Replace bool // another server of the name
	Remove  bool
}

// ClientChange is a change of the file of an MCP client, which isn't written yet.
type ClientChange struct {
	File  string   // as the user would write it
	New   bool     // the file isn't there yet
	Lines []string // that differ, as of [changedLines]; none: it is there already, or isn't to be removed
	// Taken: the file has another server of the name; Lines replace it.
	Taken bool
	// Suspect says that a worker may have written the file as it is (B8); empty: none.
	Suspect string

	source        *Source
	rel           string // below the directory of the workshop file
	before, after []byte
}

// ChangeClient is what an entry changes in the file of its client.
func (env *Env) ChangeClient(s *Source, e ClientEntry) (*ClientChange, error) {
	c := &ClientChange{File: env.Shown(filepath.Join(s.Root(), e.Client.File)), source: s, rel: e.Client.File}
	err := e.Client.Check(e.Server)
	if err != nil && !e.Remove {
		return nil, Fail(CodeFailed, "%w", err).Hint("move the project, or what the value names, to a path without it")
	}
	if c.before, err = c.read(); err != nil {
		return nil, err
	}
	c.New = c.before == nil
	if e.Remove {
		c.after, err = e.Client.Remove(c.before, e.Name)
	} else {
		c.after, err = e.Client.Add(c.before, e.Name, e.Server, e.Replace)
		if _, ok := errors.AsType[*mcpconfig.DifferentError](err); ok {
			c.Taken = true
			c.after, err = e.Client.Add(c.before, e.Name, e.Server, true)
		}
	}
	if err != nil {
		return nil, Fail(CodeFailed, "%s %w; nothing was written", c.File, err)
	}
	if !bytes.Equal(c.before, c.after) {
		c.Lines = changedLines(c.before, c.after)
	}
	all, err := facts.Records(env.recordsDir())
	if r := c.changedSince(all); r != nil && err == nil {
		c.Suspect = c.suspectText(r)
	}
	return c, err
}

// path is the file, with links of the directories above resolved.
func (c *ClientChange) path() string {
	return filepath.Join(RealPath(c.source.Root()), filepath.FromSlash(c.rel))
}

// changedSince returns a record whose workers may have written the file; nil if none can.
func (c *ClientChange) changedSince(all []*facts.Record) *facts.Record {
	file := c.path()
	if i := slices.IndexFunc(all, func(r *facts.Record) bool { return r != nil && r.Changed(file) }); i >= 0 {
		return all[i]
	}
	return nil
}

func (c *ClientChange) suspectText(r *facts.Record) string {
	return fmt.Sprintf("%s changed since %s of project %s, and a worker may have written that (B8)", c.File, r.Since(), r.Project)
}

// read returns the file's text; nil if there is none. Symbolic links lead a command
// nowhere else: a repository may have them, or a worker.
func (c *ClientChange) read() ([]byte, error) {
	link, err := hostlink.Below(c.source.Root(), filepath.FromSlash(c.rel))
	switch {
	case link != "":
		return nil, Fail(CodeRefused, "%s is a symbolic link, or below one, and is not written", c.File).
			Hint("look where it leads: `ls -l %s`", shellquote.Path(c.File))
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	root, err := os.OpenRoot(c.source.Root())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := boundedfile.ReadIn(root, filepath.FromSlash(c.rel), mcpconfig.MaxSize)
	if err != nil {
		return nil, Fail(CodeFailed, "%s: %s; nothing was written", c.File, boundedfile.Reason(err))
	}
	return text, nil
}

// WriteClient carries the change out. A file that a worker may have written is left
// alone: a person has to look at it first (B8).
func (env *Env) WriteClient(ctx context.Context, c *ClientChange) error {
	if err := env.reviewSource(ctx, c.source, UpOptions{}); err != nil {
		return err
	}
	project, err := env.projectName(c.source.Workshop.Name.V, RealPath(c.source.Root()))
	if err != nil {
		return err
	}
	own, err := env.Record(project)
	if err != nil {
		return err
	}
	file := c.path()
	others, unlock := env.recordsOf(ctx, project, []string{file})
	defer unlock()
	if r := c.changedSince(append([]*facts.Record{own}, others...)); r != nil {
		up := "workshop up"
		if r.Project != project {
			up = "workshop -p " + r.Project + " up"
		}
		return Fail(CodeRefused, "%s; nothing was written", c.suspectText(r)).
			Hint("read it; if it is yours, `%s --accept-watched` accepts the watched files as they are", up)
	}
	return facts.Rewrite(own, others, file, c.before, c.after, c.write)
}

// write replaces the file, or makes it with its directory.
func (c *ClientChange) write() error {
	root, err := os.OpenRoot(c.source.Root())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := c.makeDir(root); err != nil {
		return err
	}
	rel := filepath.FromSlash(c.rel)
	temp := filepath.Join(filepath.Dir(rel), ".new-"+rand.Text())
	if err := c.writeTemp(root, temp); err != nil {
		return err
	}
	defer root.Remove(temp) // does nothing once it is renamed
	// Somebody may have saved it in an editor in the meantime.
	if now, err := c.read(); err != nil || !bytes.Equal(now, c.before) || (now == nil) != c.New {
		return errors.Join(err, c.changedMeanwhile())
	}
	if err := c.replace(root, temp, rel); err != nil {
		return err
	}
	if now, err := c.read(); err != nil || !bytes.Equal(now, c.after) {
		return errors.Join(err, Fail(CodeFailed, "%s isn't what was written: it was changed by another program at the same time", c.File).
			Hint("look at it: a worker may have done that"))
	}
	return nil
}

func (c *ClientChange) changedMeanwhile() error {
	return Fail(CodeFailed, "%s was changed by another program; nothing was written", c.File).Hint("run it again")
}

// replace puts the new text in the place of the file. A new one replaces nothing.
func (c *ClientChange) replace(root *os.Root, temp, rel string) error {
	if c.New {
		if err := root.Link(temp, rel); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		} // else a file system without hard links
	}
	if info, err := root.Lstat(rel); err == nil && mountsFile(c.source, info) && writeInPlace(filepath.Join(c.source.Root(), rel), info, c.after) == nil {
		return nil
	}
	return root.Rename(temp, rel)
}

// writeTemp writes the text to a file that isn't there.
func (c *ClientChange) writeTemp(root *os.Root, temp string) error {
	mode, like := fs.FileMode(0o644), "."
	if rel := filepath.FromSlash(c.rel); !c.New {
		info, err := root.Lstat(rel)
		if err != nil {
			return c.changedMeanwhile()
		}
		mode, like = info.Mode().Perm(), rel
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(c.after)
	err = errors.Join(err, f.Chmod(mode), ownedLike(root, f, like, c.New), f.Sync(), f.Close())
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}

// makeDir makes the directory of the file.
func (c *ClientChange) makeDir(root *os.Root) error {
	dir := path.Dir(c.rel)
	if dir == "." {
		return nil
	}
	if err := root.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	f, err := boundedfile.OpenIn(root, dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return ownedLike(root, f, ".", true)
}

// ownedLike gives a file the owner of another. A new one has that of the project only
// where root makes it: others may not give files away.
func ownedLike(root *os.Root, f *os.File, like string, fresh bool) error {
	if fresh && os.Getuid() != 0 {
		return nil
	}
	info, err := root.Lstat(like)
	if err != nil {
		return err
	}
	return keepOwner(f, info)
}
