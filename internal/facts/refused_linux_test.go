package facts

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B7: what is refused by its name is refused under the names that symbolic and
// hard links give it, and where a worker could make what doesn't exist yet.
func TestRefusedUnderOtherNames(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{"home/.cargo", "vault/ssh", "dotfiles/config", "keys", "hard", "other"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(
		os.Symlink(at("vault/ssh"), at("home/.ssh")),
		os.Symlink("../dotfiles/config", at("home/.config")),
		os.WriteFile(at("keys/cargo"), nil, 0o600), os.Symlink(at("keys/cargo"), at("home/.cargo/credentials.toml")),
		os.WriteFile(at("home/.netrc"), nil, 0o600), os.Link(at("home/.netrc"), at("hard/machine")),
		os.WriteFile(at("other/token"), nil, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source, says string // says: empty for none
	}{
		{"vault/ssh", "/home/.ssh"},
		{"vault", "contains " + at("home/.ssh")},
		{"dotfiles/config", "contains " + at("home/.config")},
		{"dotfiles", "contains " + at("home/.config")},
		{"keys/cargo", at("home/.cargo/credentials")},
		{"keys", "contains " + at("home/.cargo/credentials")},
		{"hard/machine", "is another name of " + at("home/.netrc")},
		{"other", ""},
	} {
		for _, key := range []string{"mode: rw", "mode: ro", "copy: true"} {
			t.Run(tt.source+" "+key, func(t *testing.T) {
				_, o := project(t, "    mounts: [{source: "+at(tt.source)+", target: /m, outside_project: true, "+key+"}]\n")
				o.Home = at("home")
				_, list := judge(t, o)
				if refused := strings.Contains(list.Error(), "can't be mounted"); refused != (tt.says != "") || !strings.Contains(list.Error(), tt.says) {
					t.Errorf("got %v, want refused: %s", list, tt.says)
				}
			})
		}
	}
	for _, tt := range []struct {
		file    string
		refused bool
	}{
		{"vault/ssh/id", true},
		{"keys/cargo", true},
		{"hard/machine", true},
		{"other/token", false},
	} {
		t.Run("secret "+tt.file, func(t *testing.T) {
			if err := os.WriteFile(at(tt.file), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, o := projectOf(t, "    secrets: [{name: s, file: "+at(tt.file)+"}]\n", "[{name: one, container: {secrets: [s]}}]")
			o.Home = at("home")
			_, list := judge(t, o)
			if got := strings.Contains(list.Error(), "(B7)"); got != tt.refused {
				t.Errorf("got %v, want refused %v", list, tt.refused)
			}
		})
	}
}

// B7: a bind mount gives a directory a second name, which no link shows.
func TestRefusedByWhatIsMounted(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "mount namespaces need root")
	runtime.LockOSThread() // and never again unlocked: the thread ends with the test
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{"home/.ssh/deep", "home/.config", "home/project", "mnt"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(at("home"), at("mnt"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(at("mnt"), unix.MNT_DETACH) }()
	names := aliasesOf(refusedPaths(&Options{Home: at("home"), UID: os.Getuid()}, "/work/p"))
	for p, want := range map[string]string{
		"mnt":           "is another name of " + at("home"),
		"mnt/.ssh":      "is another name of " + at("home/.ssh"),
		"mnt/.ssh/deep": "is inside another name of " + at("home/.ssh"),
		"mnt/.config":   "contains " + at("home/.config/containers") + " under another name",
		"mnt/project":   "",
		"home/project":  "",
	} {
		if got := names.why(at(p)); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}

// B7: the home directory counts by the machine's list of users too.
func TestHomes(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	other, err := user.LookupId("1")
	testutil.Require(t, err == nil, "no user 1")
	env := map[string]string{"SUDO_UID": other.Uid, "SUDO_GID": other.Gid}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	uid, _ := strconv.Atoi(me.Uid)
	for _, tt := range []struct {
		uid  int
		want []string
	}{
		{0, []string{"/root", other.HomeDir}},
		{1, []string{other.HomeDir}},
		{4_000_000, nil},
		{uid, []string{me.HomeDir}},
	} {
		got := strings.Join(Homes(tt.uid, lookup), ":")
		if want := strings.Join(tt.want, ":"); !strings.HasPrefix(got, want) {
			t.Errorf("uid %d: %s, want %s", tt.uid, got, want)
		}
	}
}
