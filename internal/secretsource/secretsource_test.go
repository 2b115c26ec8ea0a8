package secretsource

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

const canary = "canary-of-a-secret"

// TestRead: each source has its value, and what can't be a value of a header is refused
// without showing it (attack 44).
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file("plain", canary+"\n", 0o600), link); err != nil {
		t.Fatal(err)
	}
	keyring.MockInit()
	if err := keyring.Set(Service, "npm", canary); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TOKEN": canary, "EMPTY": "", "LINES": canary + "\nX-Other: 1", "HOME": "/home/of/the/caller", "PROJECT": "x"}
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for _, tt := range []struct {
		name   string
		source Source
		want   string
		wrong  string
	}{
		{"a variable", Source{Env: "TOKEN"}, canary, ""},
		{"no variable", Source{Env: "ABSENT"}, "", "ABSENT isn't set"},
		{"an empty one", Source{Env: "EMPTY"}, "", "the value is empty"},
		{"two lines", Source{Env: "LINES"}, "", "at byte 19"},
		{"a file", Source{File: filepath.Join(dir, "plain")}, canary, ""},
		{"a link to one", Source{File: link}, canary, ""},
		{"CRLF at its end", Source{File: file("crlf", canary+"\r\n", 0o400)}, canary, ""},
		{"for the group", Source{File: file("group", canary, 0o640)}, "", "chmod 600 "},
		{"for all", Source{File: file("all", canary, 0o604)}, "", "mode 0604"},
		{"a directory", Source{File: dir}, "", "not a regular file"},
		{"a device", Source{File: "/dev/null"}, "", "not a regular file"},
		{"too long", Source{File: file("long", strings.Repeat("x", MaxValue+1), 0o600)}, "", "more than 64 KiB"},
		{"far too long", Source{File: file("longer", strings.Repeat("x", MaxValue+9), 0o600)}, "", "larger than"},
		{"no file", Source{File: filepath.Join(dir, "absent")}, "", "no such file"},
		{"the keyring", Source{Keyring: "npm"}, canary, ""},
		{"no entry", Source{Keyring: "other"}, "", `no entry "other"`},
		{"a command", Source{Command: sh("echo " + canary)}, canary, ""},
		{"its environment", Source{Command: sh("echo $HOME-$PROJECT-$PWD")}, "/home/of/the/caller--/", ""},
		{"not by PATH", Source{Command: []string{"sh", "-c", "echo x"}}, "", "not an absolute path"},
		{"no such program", Source{Command: []string{"/absent"}}, "", "no such file"},
		{"it fails", Source{Command: sh("echo " + canary + "; echo " + canary + " >&2; exit 3")}, "", "exit status 3"},
		{"it prints without end", Source{Command: sh("while :; do echo " + canary + "; done")}, "", "prints more than 64 KiB"},
		{"a colour", Source{Command: sh(`printf '\033[1m` + canary + `'`)}, "", "at byte 1"},
		{"beyond ASCII", Source{Command: sh(`printf 'a\303\244'`)}, "", "at byte 2"},
		{"its child holds the output", Source{Command: sh("sleep 3 & echo " + canary)}, "", "still holds its output"},
		{"nothing", Source{}, "", "no source"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.source.Read(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
			if string(got) != tt.want {
				t.Errorf("got %q, want %q (%v)", got, tt.want, err)
			}
			if (err != nil) != (tt.wrong != "") || err != nil && (!strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), canary)) {
				t.Errorf("error %v, want one with %q and without the value", err, tt.wrong)
			}
		})
	}
}

// A command that hangs is ended with what it started.
func TestCommandHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	mark := filepath.Join(t.TempDir(), "mark")
	began := time.Now()
	_, err := Source{Command: []string{"/bin/sh", "-c", "(sleep 2; echo x >" + mark + ") & sleep 60"}}.Read(ctx, os.LookupEnv)
	if err == nil || !strings.Contains(err.Error(), "didn't end in time") || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := os.Lstat(mark); err == nil {
		t.Error("what it started went on")
	}
}

// String has no argument of a command, which may be secret.
func TestString(t *testing.T) {
	for want, s := range map[string]Source{
		"env A": {Env: "A"}, "file /a": {File: "/a"}, "keyring a": {Keyring: "a"}, "command /bin/sh": {Command: []string{"/bin/sh", "-c", canary}}, "nothing": {},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is stored is read, and removed; what can't be a value isn't stored, and a keyring
// that waits for a person holds nobody up.
func TestStore(t *testing.T) {
	keyring.MockInit()
	s := Source{Keyring: "stored"}
	if err := Store(t.Context(), "stored", []byte(canary+"\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(t.Context(), os.LookupEnv); string(got) != canary || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, value := range []string{"", "\n", canary + "\n" + canary, " " + canary, "\x1b[1m" + canary, strings.Repeat("x", MaxValue+1)} {
		if err := Store(t.Context(), "stored", []byte(value)); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%.40q: %v", value, err)
		}
	}
	if err := Delete(t.Context(), "stored"); err != nil {
		t.Error(err)
	}
	want := NoEntryError("stored")
	if _, err := s.Read(t.Context(), os.LookupEnv); !errors.Is(err, want) {
		t.Error(err)
	}
	if err := Delete(t.Context(), "stored"); !errors.Is(err, want) {
		t.Error(err)
	}

	keyring.MockInitWithError(errors.New("it is locked"))
	if _, err := s.Read(t.Context(), os.LookupEnv); !errors.Is(err, ErrKeyring) || !strings.Contains(err.Error(), "it is locked") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	hold := make(chan struct{})
	defer close(hold)
	if err := inKeyring(ctx, "x", func() error { <-hold; return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
