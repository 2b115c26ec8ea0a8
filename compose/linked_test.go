package compose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// linkedTree is a linked worktree at ./src.
func linkedTree() LinkedGit {
	return LinkedGit{
		Dir: ".", GitDir: "/home/user/repo/.git/worktrees/src", Real: "/home/user/repo/.git", Own: "worktrees/src",
		Pinned: []string{"config", "hooks", "info", "objects/info", "worktrees", "worktrees/src/commondir", "worktrees/src/modules/x/hooks"},
		UID:    1000, GID: 1000, Mode: 0o755,
	}
}

// withLinked compiles one worker with a mount, in whose source is a repository's worktree
// or submodule.
func withLinked(t *testing.T, m workshop.Mount, l LinkedGit) (*Compiled, diag.List) {
	t.Helper()
	w := sample(t, 1)
	m.Source, m.At = val("./src"), at(10)
	if m.Target.V == "" {
		m.Target = val("/workspace/src")
	}
	w.Workers[0].Container.Mounts[0] = m
	w.Workers[0].Container.Caches = []workshop.Cache{{Name: "models", Target: val("/var/cache/models"), PruneAbove: val(workshop.Size(5 << 20)), At: at(34)}}
	f := sampleFacts()
	sf := f.Sources["./src"]
	sf.Linked = []LinkedGit{l}
	f.Sources["./src"] = sf
	return WithFacts(compiled(t, w), f)
}

// repositoryMounts are the mounts at and below a path, as text.
func repositoryMounts(c *Compiled, at string) (out []string) {
	for _, v := range c.Project.Services["worker-0"].Volumes {
		if strings.HasPrefix(v.Target, at) {
			mode := "rw"
			if v.ReadOnly {
				mode = "ro"
			}
			out = append(out, strings.TrimPrefix(v.Target, at)+" "+mode+" "+v.Source)
		}
	}
	return out
}

// TestB08_LinkedRepository: the repository of a linked worktree is mounted where its .git
// file looks for it, and with `git: rw` only what git writes is writable.
func TestB08_LinkedRepository(t *testing.T) {
	const back = "/worktrees/src/gitdir ro /run/user/1000/workshop/x/gitdir-"
	for _, tt := range []struct {
		name string
		m    workshop.Mount
		l    func(*LinkedGit)
		want []string
	}{
		{name: "read-only mount", want: []string{" ro /home/user/repo/.git", back}},
		{name: "writable mount", m: workshop.Mount{ReadWrite: true}, want: []string{" ro /home/user/repo/.git", back}},
		{name: "git: rw in a directory that is read-only", m: workshop.Mount{ReadWrite: true, GitWritable: true}, l: func(l *LinkedGit) { l.Dir, l.Held = ".claude/worktrees/src", true },
			want: []string{" ro /home/user/repo/.git", back}},
		{name: "below, and its repository can't be writable", m: workshop.Mount{ReadWrite: true, GitWritable: true}, l: func(l *LinkedGit) { l.Dir, l.NotWritable = "a/src", "why" },
			want: []string{" ro /home/user/repo/.git", back}},
		{name: "git: rw", m: workshop.Mount{ReadWrite: true, GitWritable: true}, want: []string{
			" rw /home/user/repo/.git", "/config ro /home/user/repo/.git/config", "/hooks ro /home/user/repo/.git/hooks", "/info ro /home/user/repo/.git/info",
			"/objects rw /home/user/repo/.git/objects", "/objects/info ro /home/user/repo/.git/objects/info",
			"/worktrees ro /home/user/repo/.git/worktrees", "/worktrees/src rw /home/user/repo/.git/worktrees/src",
			"/worktrees/src/commondir ro /home/user/repo/.git/worktrees/src/commondir", back,
			"/worktrees/src/modules rw /home/user/repo/.git/worktrees/src/modules", "/worktrees/src/modules/x rw /home/user/repo/.git/worktrees/src/modules/x",
			"/worktrees/src/modules/x/hooks ro /home/user/repo/.git/worktrees/src/modules/x/hooks",
		}},
		{name: "unusable", l: func(l *LinkedGit) { l.Unusable = "why" }},
		{name: "a copy", m: workshop.Mount{Copy: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := linkedTree()
			if tt.l != nil {
				tt.l(&l)
			}
			c, list := withLinked(t, tt.m, l)
			if len(list) > 0 {
				t.Fatal(list)
			}
			got := repositoryMounts(c, "/home/user/repo/.git")
			for i, line := range got {
				if strings.HasPrefix(line, back) {
					got[i] = back
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, v := range Check(c) {
				t.Error(v)
			}
			n := c.Project.Services["worker-0"].Environment["GIT_CONFIG_COUNT"]
			if want := fmt.Sprint(1 + len(tt.want)/10); n == nil || *n != want { // no gc where it commits
				t.Errorf("GIT_CONFIG_COUNT = %v, want %s", n, want)
			}
		})
	}
}

// TestLinkedPlaces: where git looks for a repository, and why it can't be there.
func TestLinkedPlaces(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   string
		l        LinkedGit
		want     string // of the mount's target
		unusable string
	}{
		{name: "a path relative to the worktree", l: LinkedGit{GitDir: "../../repo/.git/worktrees/src", Own: "worktrees/src"}, want: "/repo/.git"},
		{name: "a submodule", target: "/workspace/libs/x", l: LinkedGit{GitDir: "../../.git/modules/libs/x", Worktree: "../../../../libs/x"}, want: "/workspace/.git/modules/libs/x"},
		{name: "a submodule at another target", target: "/code", l: LinkedGit{GitDir: "../../.git/modules/libs/x", Worktree: "../../../../libs/x"}, unusable: "git would look for the files of this submodule in /libs/x"},
		{name: "a submodule below", target: "/workspace/super", l: LinkedGit{Dir: "x", GitDir: "../../repo/.git/worktrees/super/modules/x", Worktree: "../../../../../../super/x"}, want: "/workspace/repo/.git/worktrees/super/modules/x"},
		{name: "in another mount", l: LinkedGit{GitDir: "/workspace/output/.git/worktrees/src", Own: "worktrees/src"}, unusable: "which is in the mount at /workspace/output"},
		{name: "it is in another mount", l: LinkedGit{GitDir: "/workspace/output/repo/.git/worktrees/src", Own: "worktrees/src", Real: "/work/project/output/repo/.git"}},
		{name: "it would cover a mount", l: LinkedGit{GitDir: "/workspace/worktrees/src", Own: "worktrees/src"}, unusable: "where /workspace/src is a mount"},
		{name: "over workshop's own", l: LinkedGit{GitDir: "/run/repo/.git/worktrees/src", Own: "worktrees/src"}, unusable: "which workshop provides"},
		{name: "over a tmpfs", l: LinkedGit{GitDir: "/tmp/worktrees/src", Own: "worktrees/src"}, unusable: "memory file system"},
		{name: "in a tmpfs", l: LinkedGit{GitDir: "/tmp/r/.git/worktrees/src", Own: "worktrees/src"}, want: "/tmp/r/.git"},
		{name: "over everything", l: LinkedGit{GitDir: "/worktrees/src", Own: "worktrees/src"}, unusable: "is a mount"},
		{name: "at a cache", l: LinkedGit{GitDir: "/var/cache/models/worktrees/src", Own: "worktrees/src"}, unusable: "and the cache models is at /var/cache/models"},
		{name: "in a cache", l: LinkedGit{GitDir: "/var/cache/models/r/.git/worktrees/src", Own: "worktrees/src"}, unusable: "and the cache models is at /var/cache/models"},
		{name: "around a cache", l: LinkedGit{GitDir: "/var/cache/worktrees/src", Own: "worktrees/src"}, unusable: "and the cache models is at /var/cache/models"},
		{name: "a colon", l: LinkedGit{GitDir: "/a:b/.git/worktrees/src", Own: "worktrees/src"}, unusable: "characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.l.Real == "" {
				tt.l.Real = "/home/user/repo/.git"
			}
			if tt.l.Dir == "" {
				tt.l.Dir = "."
			}
			tt.l.UID, tt.l.Mode, tt.l.Pinned = 1000, 0o755, linkedTree().Pinned[:5]
			m := workshop.Mount{}
			if tt.target != "" {
				m.Target = val(tt.target)
			}
			c, list := withLinked(t, m, tt.l)
			if len(list) > 0 {
				t.Fatal(list)
			}
			var target, unusable string
			for _, l := range c.Facts.LinkedMounts(&c.definition("worker-0").Container) {
				if unusable = l.Unusable; unusable == "" {
					target = l.Target
				}
			}
			if target != tt.want || !strings.Contains(unusable, tt.unusable) || (unusable == "") != (tt.unusable == "") {
				t.Errorf("at %q, unusable %q", target, unusable)
			}
			for _, v := range Check(c) {
				t.Error(v)
			}
			// With `git: rw` nothing starts where git can't work.
			m.ReadWrite, m.GitWritable = true, true
			_, list = withLinked(t, m, tt.l)
			if refused := list.HasErrors(); tt.l.Dir == "." && refused != (tt.unusable != "") {
				t.Errorf("with git: rw: %v", list)
			}
		})
	}
}

// TestB08_CheckFindsWritableRepository: each mount that holds what git obeys is missed.
func TestB08_CheckFindsWritableRepository(t *testing.T) {
	const repo = "/home/user/repo/.git"
	rw := workshop.Mount{ReadWrite: true, GitWritable: true}
	change := func(target string, do func(*types.ServiceVolumeConfig)) func(*types.ServiceConfig) {
		return func(s *types.ServiceConfig) {
			for i := range s.Volumes {
				if s.Volumes[i].Target == target {
					do(&s.Volumes[i])
					return
				}
			}
			t.Fatalf("no mount at %s", target)
		}
	}
	writable := func(v *types.ServiceVolumeConfig) { v.ReadOnly = false }
	var tests []struct {
		name string
		m    workshop.Mount
		do   func(*types.ServiceConfig)
	}
	add := func(name string, m workshop.Mount, do func(*types.ServiceConfig)) {
		tests = append(tests, struct {
			name string
			m    workshop.Mount
			do   func(*types.ServiceConfig)
		}{name, m, do})
	}
	add("writable without git: rw", workshop.Mount{ReadWrite: true}, change(repo, writable))
	for _, p := range append(linkedTree().Pinned, "worktrees/src/gitdir") {
		add(p+" is writable", rw, change(repo+"/"+p, writable))
		add(p+" is not mounted", rw, func(s *types.ServiceConfig) {
			s.Volumes = slices.DeleteFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == repo+"/"+p })
		})
	}
	add("objects can be moved away", rw, func(s *types.ServiceConfig) {
		s.Volumes = slices.DeleteFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == repo+"/objects" })
	})
	add("another worktree is writable", rw, func(s *types.ServiceConfig) {
		s.Volumes = append(s.Volumes, bind(repo+"/worktrees/other", repo+"/worktrees/other", false))
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, list := withLinked(t, tt.m, linkedTree())
			if len(list) > 0 {
				t.Fatal(list)
			}
			s := c.Project.Services["worker-0"]
			s.Volumes = slices.Clone(s.Volumes)
			tt.do(&s)
			c.Project.Services["worker-0"] = s
			if len(Check(c)) == 0 {
				t.Error("the check finds nothing")
			}
		})
	}
}

// TestLinkedByPlainCompose: the second file has the repository, and the file that says
// where the worktree is lies next to it.
func TestLinkedByPlainCompose(t *testing.T) {
	c, list := withLinked(t, workshop.Mount{ReadWrite: true, GitWritable: true}, linkedTree())
	if len(list) > 0 {
		t.Fatal(list)
	}
	files, err := RenderFacts(c)
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range files {
		name, _, _ := strings.Cut(f.Path, "gitdir-")
		text[name] += string(f.Data)
	}
	if got := text["run/"]; got != "/workspace/src/.git\n" {
		t.Errorf("the file has %q", got)
	}
	for _, want := range []string{"./run/gitdir-", "source: /home/user/repo/.git/hooks", "GIT_CONFIG_KEY_1: gc.auto"} {
		if !strings.Contains(text[FactsFile], want) {
			t.Errorf("%s has no %q:\n%s", FactsFile, want, text[FactsFile])
		}
	}
}

// TestB45_GitAuthor: variables of git have the user's name where the file says so; those of
// the file win, and the rendered project has none of it.
func TestB45_GitAuthor(t *testing.T) {
	for _, tt := range []struct{ author, want string }{
		{"host", "Me|me@example.org|File|me@example.org"},
		{"none", "||File|"},
		{"", "||File|"},
	} {
		w := sample(t, 1)
		k := &w.Workers[0].Container
		k.GitAuthor = val(tt.author)
		k.Env = map[string]workshop.Value[string]{"GIT_COMMITTER_NAME": val("File")}
		f := sampleFacts()
		f.GitAuthor = GitAuthor{"Me", "me@example.org", "Me", "me@example.org"}
		c := withFacts(t, compiled(t, w), f)
		var got []string
		for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
			text := ""
			if v := c.Project.Services["worker-0"].Environment[name]; v != nil {
				text = *v
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "|"); text != tt.want {
			t.Errorf("git_author %q: got %s, want %s", tt.author, text, tt.want)
		}
		files, err := Render(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.Contains(string(file.Data), "me@example.org") {
				t.Errorf("%s has the user's address", file.Path)
			}
		}
	}
}
