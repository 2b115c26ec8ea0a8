//go:build linux

package packaging

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

const version = "v0.1.2"

// TestDist builds twice, in two directories, and then uses what was built as those do who
// download it.
func TestDist(t *testing.T) {
	testutil.Require(t, !testing.Short(), "it builds all programs")
	first, second := dist(t, "a", 0o022, "UTC"), dist(t, "another/place", 0o077, "Asia/Tokyo")
	a, b := sums(t, first), sums(t, second)
	for name, sum := range a {
		if b[name] != sum {
			t.Errorf("%s: two builds differ", name)
		}
	}
	// Sums, archive, two packages, formula, and the dependencies of each program.
	if want := 6 + len(machines("")); len(a) != want || len(b) != want {
		t.Fatalf("made %v and %v, want %d files", a, b, want)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = first
	output(t, check)
	arch := runtime.GOARCH
	t.Run("archive", func(t *testing.T) {
		archive(t, filepath.Join(first, "workshop_0.1.2_linux_"+arch+".tar.gz"))
	})
	deb := filepath.Join(first, "workshop_0.1.2_"+arch+".deb")
	t.Run("deb", func(t *testing.T) {
		list := output(t, exec.Command("dpkg-deb", "-c", deb))
		var names []string
		for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
			f := strings.Fields(line)
			if f[1] != "root/root" || strings.Contains(f[0], "s") || f[0][5] == 'w' || f[0][8] == 'w' {
				t.Errorf("owner or mode: %s", line)
			}
			if name := strings.TrimPrefix(f[5], "./"); f[0][0] != 'd' {
				names = append(names, name)
			}
		}
		matches(t, names, append(slices.Clone(installed), `usr/share/zsh/vendor-completions/_(workshop|llmdo)`))
	})
	t.Run("rpm", func(t *testing.T) {
		_, err := exec.LookPath("rpm")
		testutil.Require(t, err == nil, "there is no rpm")
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
		rpm := filepath.Join(first, "workshop-0.1.2-1."+machine+".rpm")
		list := strings.Split(strings.TrimSpace(output(t, exec.Command("rpm", "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\n]", rpm))), "\n")
		var names []string
		for _, line := range list {
			f := strings.Fields(line)
			if f[1] != "root" {
				t.Errorf("owner: %s", line)
			}
			if f[0][0] != 'd' {
				names = append(names, strings.TrimPrefix(f[2], "/"))
			}
		}
		matches(t, names, append(slices.Clone(installed), `usr/share/zsh/site-functions/_(workshop|llmdo)`))
		output(t, exec.Command("rpm", "--checksig", "--nosignature", rpm))
	})
	t.Run("formula", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(first, "workshop.rb"))
		sum := a["workshop_0.1.2_linux_"+arch+".tar.gz"]
		if err != nil || !strings.Contains(string(text), sum) || strings.Contains(string(text), "@") {
			t.Errorf("%v\n%s", err, text)
		}
	})
	for name, script := range map[string]string{"installed": "installed.sh", "downloaded": "downloaded.sh"} {
		t.Run(name, func(t *testing.T) {
			testutil.Require(t, os.Geteuid() == 0, "only root installs packages, and makes the file system for it")
			cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "testdata/apart.sh", script, first)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			} else {
				t.Logf("%s", out)
			}
		})
	}
}

// otherInit is the file of workshop-init for the other architecture.
var otherInit = "workshop-init-linux-" + map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH] + `\.zst`

// machines is the program of virtual machines, which amd64 alone has.
func machines(dir string) []string {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return []string{dir + "workshop-vm"}
}

// installed are the files of packages; those of zsh have other places in each.
var installed = append(machines("usr/libexec/workshop/"),
	`usr/bin/(workshop|llmdo)`, `usr/libexec/workshop/workshop-init`, `usr/libexec/workshop/`+otherInit, `usr/libexec/docker/cli-plugins/docker-workshop`,
	`usr/share/man/man1/(workshop|llmdo)(-[a-z-]+)*\.1\.gz`, `usr/share/bash-completion/completions/(workshop|llmdo)`,
	`usr/share/fish/vendor_completions\.d/(workshop|llmdo)\.fish`, `usr/share/workshop/apparmor`,
	`usr/share/doc/workshop/(copyright|README\.md|CHANGELOG\.md)`, `usr/share/doc/workshop/docs/.*\.md`, `usr/share/doc/workshop/examples/.*`,
)

// matches reports names that no pattern has, and patterns that have no name.
func matches(t *testing.T, names, patterns []string) {
	t.Helper()
	used := map[string]bool{}
	for _, name := range names {
		i := slices.IndexFunc(patterns, func(p string) bool { return regexp.MustCompile("^" + p + "$").MatchString(name) })
		if i < 0 {
			t.Errorf("unexpected: %s", name)
			continue
		}
		used[patterns[i]] = true
	}
	for _, p := range patterns {
		if !used[p] {
			t.Errorf("missing: %s", p)
		}
	}
}

func archive(t *testing.T, file string) {
	list := strings.Split(strings.TrimSpace(output(t, exec.Command("tar", "--numeric-owner", "-tvzf", file))), "\n")
	var names []string
	for _, line := range list {
		f := strings.Fields(line)
		if f[1] != "0/0" || f[0][5] == 'w' || f[0][8] == 'w' {
			t.Errorf("owner or mode: %s", line)
		}
		if f[0][0] != 'd' {
			names = append(names, f[5])
		}
	}
	top := "workshop_0.1.2_linux_" + runtime.GOARCH + "/"
	matches(t, names, append(machines(top),
		top+`(workshop|llmdo)`, top+otherInit, top+`man/(workshop|llmdo)(-[a-z-]+)*\.1`, top+`completions/(_?(workshop|llmdo)|(workshop|llmdo)\.(bash|fish|ps1))`,
		top+`(LICENSE|README\.md|CHANGELOG\.md)`, top+`docs/.*\.md`, top+`examples/.*`,
	))
}

// dist runs `make dist` in a copy of the source, and returns what it made.
func dist(t *testing.T, place string, umask int, zone string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), place)
	list := output(t, exec.Command("git", "-C", "../../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	for _, name := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
		copyFile(t, filepath.Join("../../..", name), filepath.Join(dir, name))
	}
	out := filepath.Join(dir, "out")
	script := fmt.Sprintf("umask %04o && exec make dist", umask)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ="+zone, "VERSION="+version, "ARCHES=amd64 arm64", "PLATFORMS=linux/"+runtime.GOARCH,
		"SOURCE_DATE_EPOCH=1700000000", "DIST="+out, "MAKEFLAGS=", "GOFLAGS=")
	output(t, cmd)
	return out
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) { // removed, and still in the index
		return
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, to); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}

// sums are the hashes of the files of a directory.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return out
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, said.Bytes())
	}
	return string(out)
}
