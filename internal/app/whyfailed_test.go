package app

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// The lines for git's name can be pasted where variables are already.
func TestHintIdentity(t *testing.T) {
	for _, c := range []struct{ name, env, want string }{
		{"none", "", "write in its container in workshop.yaml, then run `workshop up`:\nenv: {GIT_AUTHOR_NAME: NAME, GIT_AUTHOR_EMAIL: EMAIL, GIT_COMMITTER_NAME: NAME, GIT_COMMITTER_EMAIL: EMAIL}"},
		{"a line each", "\n      LANG: C\n      GIT_AUTHOR_NAME: x", "add below its `env:` in workshop.yaml, then run `workshop up`:\nGIT_AUTHOR_EMAIL: EMAIL\nGIT_COMMITTER_NAME: NAME\nGIT_COMMITTER_EMAIL: EMAIL"},
		{"in braces", " {LANG: C}", "add between the braces of its `env:` in workshop.yaml, then run `workshop up`:\nGIT_AUTHOR_NAME: NAME, GIT_AUTHOR_EMAIL: EMAIL, GIT_COMMITTER_NAME: NAME, GIT_COMMITTER_EMAIL: EMAIL,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			text := "workshop:\n  name: x\n  container:\n    image: host\n"
			if c.env != "" {
				text += "    env:" + c.env + "\n"
			}
			if err := os.CopyFS(dir, fstest.MapFS{
				"workshop.yaml": {Data: []byte(text + "  workers: [w]\n")},
				"workers/w.md":  {Data: []byte("---\nname: w\ntools: Bash\n---\nx\n")},
			}); err != nil {
				t.Fatal(err)
			}
			s, err := testEnv(&Env{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}, io.Discard).Read(t.Context(), filepath.Join(dir, "workshop.yaml"))
			if err != nil || s.Workshop == nil {
				t.Fatal(err, s.Diagnostics)
			}
			const begin = "a worker doesn't see your git configuration: "
			if got := s.hintIdentity(s.Worker("w"), "workshop.yaml"); got != begin+c.want {
				t.Errorf("got %q, want %q", got, begin+c.want)
			}
		})
	}
}
