package facts

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// TestB45_GitAuthor: the name for commits is the user's own, for this place, and the
// repository has no say.
func TestB45_GitAuthor(t *testing.T) {
	const me = "[user]\n\tname = Me\n\temail = me@example.org\n"
	both := func(name, email string) compose.GitAuthor {
		return compose.GitAuthor{AuthorName: name, AuthorEmail: email, CommitterName: name, CommitterEmail: email}
	}
	for _, tt := range []struct {
		name    string
		files   map[string]string // of HOME
		env     map[string]string
		project map[string]string
		want    compose.GitAuthor
		problem string
	}{
		{name: "of the home", files: map[string]string{".gitconfig": me}, want: both("Me", "me@example.org")},
		{name: "of XDG_CONFIG_HOME", files: map[string]string{".config/git/config": me}, want: both("Me", "me@example.org")},
		{name: "both", files: map[string]string{".config/git/config": me, ".gitconfig": "[user] name = Other"}, want: both("Other", "me@example.org")},
		{name: "another file", files: map[string]string{".gitconfig": me, "elsewhere": "[user]\nname = E\nemail = e@e"}, env: map[string]string{"GIT_CONFIG_GLOBAL": "HOME/elsewhere"}, want: both("E", "e@e")},
		{name: "none, by the environment", files: map[string]string{".gitconfig": me}, env: map[string]string{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Env", "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "e@e"}, want: both("Env", "e@e")},
		{name: "included", files: map[string]string{".gitconfig": "[include]\npath = ~/a\n", "a": "[include]\npath = b\n[user]\nemail = a@a", "b": me}, want: both("Me", "a@a")},
		{name: "of this place", files: map[string]string{".gitconfig": me + "[includeIf \"gitdir:PROJECT/\"]\npath = work\n", "work": "[user]\nemail = work@example.org"}, want: both("Me", "work@example.org")},
		{name: "of this place, by its last part", files: map[string]string{".gitconfig": me + "[includeIf \"gitdir/i:LAST/.GIT\"]\npath = work\n", "work": "[user]\nemail = work@example.org"}, want: both("Me", "work@example.org")},
		{name: "of another place", files: map[string]string{".gitconfig": me + "[includeIf \"gitdir:~/work/\"]\npath = work\n", "work": "[user]\nemail = work@example.org"}, want: both("Me", "me@example.org")},
		{name: "what the repository says", files: map[string]string{".gitconfig": me + "[includeIf \"onbranch:main\"]\npath = work\n[includeIf \"hasconfig:remote.*.url:**\"]\npath = work\n", "work": "[user]\nemail = work@example.org"},
			project: map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[user]\nname = Evil\nemail = evil@example.org\n[remote \"x\"]\nurl = x"}, want: both("Me", "me@example.org")},
		{name: "a .git file that proves nothing", files: map[string]string{".gitconfig": me + "[includeIf \"gitdir:~/work/\"]\npath = w\n", "w": "[user]\nemail = work@example.org", "work/.git/HEAD": "x", "work/.git/config": "[core]\n"},
			project: map[string]string{".git": "gitdir: HOME/work/.git\n"}, want: both("Me", "me@example.org")},
		{name: "author and committer", files: map[string]string{".gitconfig": me + "[author]\nname = A\n[committer]\nemail = c@c\n"}, want: compose.GitAuthor{AuthorName: "A", AuthorEmail: "me@example.org", CommitterName: "Me", CommitterEmail: "c@c"}},
		{name: "of the environment", files: map[string]string{".gitconfig": me}, env: map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Env"}, want: both("Env", "me@example.org")},
		{name: "a subsection", files: map[string]string{".gitconfig": me + "[user \"x\"]\nname = X\n"}, want: both("Me", "me@example.org")},
		{name: "no name", files: map[string]string{".gitconfig": "[user]\nemail = a@a"}, problem: "git config --global user.name"},
		{name: "no address", files: map[string]string{".gitconfig": "[user]\nname = a"}, problem: "git config --global user.email"},
		{name: "nothing", problem: "git config --global user.name"},
		{name: "a line end", files: map[string]string{".gitconfig": "[user]\nname = \"a\\nb\"\nemail = a@a"}, problem: "characters that are not shown"},
		{name: "long", files: map[string]string{".gitconfig": "[user]\nname = " + strings.Repeat("a", 300) + "\nemail = a@a"}, problem: "longer than"},
		{name: "includes without end", files: map[string]string{".gitconfig": "[include]\npath = .gitconfig\n"}, problem: "includes deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := project(t, "    git_author: host\n")
			home := t.TempDir()
			last := dir[strings.LastIndexByte(dir, '/')+1:]
			fill := strings.NewReplacer("HOME", home, "PROJECT", dir, "LAST", last)
			if tt.project == nil {
				tt.project = map[string]string{".git/HEAD": "ref: refs/heads/main\n"}
			}
			for name, text := range tt.files {
				write(t, home, name, fill.Replace(text))
			}
			for name, text := range tt.project {
				write(t, dir, name, fill.Replace(text))
			}
			lookup := o.Lookup
			o.Home, o.Lookup = home, func(name string) (string, bool) {
				if name == "GIT_CONFIG_SYSTEM" {
					return "/nonexistent", true
				}
				if v, ok := tt.env[name]; ok {
					return fill.Replace(v), true
				}
				return lookup(name)
			}
			f, list := collect(t, o, false)
			said := ""
			for _, d := range list {
				said += d.Summary + " " + d.Hint
			}
			if (tt.problem == "") == list.HasErrors() || !strings.Contains(said, tt.problem) {
				t.Fatalf("got %q, want %q", said, tt.problem)
			}
			if tt.problem == "" && f.GitAuthor != tt.want {
				t.Errorf("got %+v, want %+v", f.GitAuthor, tt.want)
			}
		})
	}
}
