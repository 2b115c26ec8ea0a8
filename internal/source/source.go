// Package source names what a workshop takes from other repositories, chooses which
// commit of one a version means, and keeps what was fetched by the hash of its content
// (B46, B47). What it reads, from a remote repository, a cache that other programs write to
// or a directory of the project, is hostile: a tree counts only where its hash is the
// locked one.
package source

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// ID names a directory of a git repository, or a repository of a registry, whatever its
// version. The zero value names none. IDs are comparable: two ways to write one are equal.
type ID struct {
	scheme string // https, ssh or oci
	user   string // of ssh
	host   string // lower case, without the default port
	path   string // of the repository, without slashes at its ends and without .git
	dir    string // in it; "" is its root
}

const wantSource = "want git+https://HOST/PATH//DIR or oci://REGISTRY/REPOSITORY"

// ParseID reads what workshop.yaml has in `from:`, git+https://HOST/PATH//DIR,
// git+ssh://[USER@]HOST/PATH//DIR or oci://REGISTRY/REPOSITORY.
func ParseID(text string) (ID, error) {
	bad := func(why string) (ID, error) {
		return ID{}, fmt.Errorf("%q is not a source: %s", clip.Bytes(text, 200), why)
	}
	if rest, isOCI := strings.CutPrefix(text, ociScheme+"://"); isOCI {
		id, err := parseOCI(rest)
		if err != nil {
			return bad(err.Error())
		}
		return id, nil
	}
	address, isGit := strings.CutPrefix(text, "git+")
	scheme, rest, ok := strings.Cut(address, "://")
	if !isGit || !ok {
		return bad(wantSource)
	}
	rest, dir, _ := strings.Cut(rest, "//")
	remote, err := git.ParseRemote(scheme + "://" + rest)
	if err != nil {
		return ID{}, err
	}
	if dir = strings.TrimSuffix(dir, "/"); dir != "" && (!fs.ValidPath(dir) || dir == "." || strings.ContainsFunc(dir, unusual)) {
		return bad("its directory is not a plain path without ..")
	}
	u, err := url.Parse(remote.String())
	if err != nil {
		return ID{}, err
	}
	id := ID{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), dir: dir}
	if strings.Contains(id.host, ":") { // IPv6
		id.host = "[" + id.host + "]"
	}
	if u.User != nil {
		id.user = u.User.Username()
	}
	if port := u.Port(); port != "" && port != map[string]string{"https": "443", "ssh": "22"}[u.Scheme] {
		id.host += ":" + port
	}
	id.path = strings.Trim(path.Clean(u.Path), "/")
	for strings.HasSuffix(id.path, ".git") && path.Base(id.path) != ".git" {
		id.path = strings.TrimSuffix(id.path, ".git")
	}
	if name, version, has := strings.Cut(path.Base(cmp.Or(id.dir, id.path)), "@"); has && name != "" && versionLike().MatchString(version) {
		return bad("its version is said by itself: version: ^" + strings.TrimLeft(version, "^~v"))
	}
	if id.path == "" || id.path == "." || strings.ContainsFunc(id.path, unusual) || strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") {
		return bad("its path is not a plain path without ..")
	}
	return id, nil
}

// unusual reports whether a character doesn't belong into the name of a repository: it is
// part of file names, and is shown on terminals.
func unusual(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"'\:*?<>|$%&;()[]{}!,#`+"`", r)
}

// String is what locks and commands name it by: HOST/PATH//DIR, or HOST/PATH/:oci for a
// repository of a registry.
func (id ID) String() string {
	out := id.host + "/" + id.path
	if id.scheme == ociScheme {
		return out + ociMark
	}
	if id.dir != "" {
		out += "//" + id.dir
	}
	return out
}

// IsName reports whether a text is what [ID.String] names some source by.
func IsName(text string) bool {
	froms := []string{"git+https://" + text, "git+ssh://" + text} // each has a port of its own that is left out
	if registry, is := strings.CutSuffix(text, ociMark); is {
		froms = []string{ociScheme + "://" + registry}
	}
	return slices.ContainsFunc(froms, func(from string) bool {
		id, err := ParseID(from)
		return err == nil && id.String() == text
	})
}

// Host is the machine that it comes from, with its port if that isn't the usual one.
func (id ID) Host() string { return id.host }

// Dir is the directory in the repository; "" is its root.
func (id ID) Dir() string { return id.dir }

// Name is the last part of its address: of the directory, else of the repository.
func (id ID) Name() string { return path.Base(cmp.Or(id.dir, id.path)) }

// From is the source as workshop.yaml has it.
func (id ID) From() string {
	if id.scheme == ociScheme {
		return id.address()
	}
	out := "git+" + id.address()
	if id.dir != "" {
		out += "//" + id.dir
	}
	return out
}

func (id ID) address() string {
	at := ""
	if id.user != "" {
		at = id.user + "@"
	}
	return id.scheme + "://" + at + id.host + "/" + id.path
}

// Remote is its repository of git.
func (id ID) Remote() (git.Remote, error) { return git.ParseRemote(id.address()) }
