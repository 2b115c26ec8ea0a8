package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/procgroup"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Remote is a repository elsewhere. The zero value names none.
type Remote struct {
	url       string
	protocols string // that git may use, by GIT_ALLOW_PROTOCOL
}

// ParseRemote reads the address of a repository: https://HOST/PATH or ssh://[USER@]HOST/PATH.
// Credentials are the user's own, by git's configuration, and never a part of it.
func ParseRemote(address string) (Remote, error) {
	u, err := url.Parse(address)
	bad := func(why string) (Remote, error) {
		return Remote{}, fmt.Errorf("%q is not the address of a repository: %s", clip.Bytes(address, 200), why)
	}
	switch {
	case err != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return bad("want https://HOST/PATH or ssh://[USER@]HOST/PATH")
	case u.Scheme != "https" && u.Scheme != "ssh":
		return bad("want https:// or ssh://")
	case u.User != nil && (u.Scheme == "https" || isSecret(u.User)):
		return bad("it has credentials; those of git's configuration are used")
	case u.User != nil && !plainName(u.User.Username()), !plainName(u.Hostname()):
		return bad("its host or user is not valid")
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") == "":
		return bad("want a path, and nothing after it")
	}
	return Remote{url: u.String(), protocols: "https:ssh"}, nil
}

func isSecret(u *url.Userinfo) bool { _, set := u.Password(); return set }

// plainName reports whether ssh can't take a name for an option, or a shell for more.
func plainName(s string) bool {
	return s != "" && s[0] != '-' && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_:") == ""
}

// String is the address.
func (r Remote) String() string { return r.url }

// Limits of what is taken from a remote repository.
const (
	maxRefs   = 100_000
	maxPack   = 64 << 20 // bytes of any file that git writes
	maxMemory = 4 << 30  // bytes of address space of each program
)

// remoteFences are settings for talking to a remote repository: nothing is followed to
// another host, and what comes is checked.
var remoteFences = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "http.followRedirects=false",
	"-c", "transfer.bundleURI=false",
	"-c", "transfer.credentialsInUrl=die",
	"-c", "fetch.fsckObjects=true",
	"-c", "transfer.fsckObjects=true",
	"-c", "fetch.unpackLimit=1",
	"-c", "fetch.uriProtocols=", // of packs that the server has elsewhere
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.writeCommitGraph=false",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
}

// sshCommand asks nobody, and gives the server nothing of the user's but what identifies
// them: a project's file names it, and a configuration that is for all hosts may forward
// the agent.
const sshCommand = "ssh -o BatchMode=yes -o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o Tunnel=no -o PermitLocalCommand=no"

// talk runs a command that connects to the remote repository, in a directory of ours. A
// server that leads elsewhere is asked again by the same address with .git: where others
// serve both, that of GitLab leads from one to the other.
func (r Remote) talk(ctx context.Context, dir string, command []string, refs ...string) ([]byte, error) {
	out, err := r.talkOnce(ctx, dir, command, refs)
	said, ok := errors.AsType[*Error](err)
	if ok && redirected().MatchString(said.Said) && !strings.HasSuffix(r.url, ".git") {
		r.url += ".git"
		return r.talkOnce(ctx, dir, command, refs)
	}
	return out, err
}

var redirected = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`returned error: 30[1-8]$`) })

func (r Remote) talkOnce(ctx context.Context, dir string, command, refs []string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("%s took longer than %s", r, Timeout))
	defer cancel()
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, ErrNoGit
	}
	line := slices.Concat([]string{program, "--no-pager", "--git-dir=" + dir}, remoteFences, command, []string{"--end-of-options", r.url}, refs)
	if runtime.GOOS != "windows" { // each program that git starts has the limits, too
		limits := fmt.Sprintf(`ulimit -f %d && { ulimit -v %d 2>/dev/null; exec "$@"; }`, maxPack/512, maxMemory/1024) // -v: not on every system
		line = append([]string{"/bin/sh", "-c", limits, "git"}, line...)
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	procgroup.Own(cmd)
	cmd.Env = environ("GIT_ALLOW_PROTOCOL="+r.protocols, "GIT_SSH_COMMAND="+sshCommand, "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_HTTP_LOW_SPEED_LIMIT=1000", "GIT_HTTP_LOW_SPEED_TIME=20")
	return finish(ctx, cancel, cmd, command[0])
}

// Ref is a branch or tag of a remote repository.
type Ref struct {
	Name string // refs/tags/v1.4.2
	// Object is what it points at; Commit is the commit of that: another one only for
	// an annotated tag.
	Object, Commit string
}

// Refs asks for all branches and tags, in order of their names.
func (r Remote) Refs(ctx context.Context) ([]Ref, error) {
	dir, remove, err := emptyRepository(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	out, err := r.talk(ctx, dir, []string{"ls-remote", "--heads", "--tags"})
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for line := range bytes.Lines(out) {
		object, name, ok := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		if !ok || !objectName().MatchString(object) {
			return nil, fmt.Errorf("%s listed %q", r, clip.Bytes(string(line), 80))
		}
		if peeled, is := strings.CutSuffix(name, "^{}"); is {
			if n := len(refs); n > 0 && refs[n-1].Name == peeled {
				refs[n-1].Commit = object
			}
			continue
		}
		if len(refs) >= maxRefs {
			return nil, fmt.Errorf("%s has more than %d branches and tags", r, maxRefs)
		}
		if validRef(name) {
			refs = append(refs, Ref{Name: name, Object: object, Commit: object})
		}
	}
	sortfunc.Stable(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return refs, nil
}

// validRef reports whether a name is one of a branch or tag that can be fetched by its
// name (git-check-ref-format(1)): nothing that a refspec or a terminal takes for more.
func validRef(name string) bool {
	rest, branch := strings.CutPrefix(name, "refs/heads/")
	if !branch {
		var tag bool
		if rest, tag = strings.CutPrefix(name, "refs/tags/"); !tag {
			return false
		}
	}
	return rest != "" && len(rest) <= 255 && !strings.Contains(rest, "..") && !strings.Contains(rest, "//") && !strings.Contains(rest, "@{") &&
		!strings.ContainsAny(rest, " ~^:?*[\\") && !strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f }) &&
		rest[0] != '-' && rest[0] != '/' && !strings.HasSuffix(rest, "/") && !strings.HasSuffix(rest, ".lock") && !strings.HasSuffix(rest, ".")
}

var errNotFetchable = errors.New("want a branch, a tag or a whole commit")
