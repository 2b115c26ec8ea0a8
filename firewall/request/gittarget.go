package request

import (
	"errors"
	"strings"
)

// GitKind is what a request of git or of git-lfs is for.
type GitKind int

// The requests of gitprotocol-http(5), and of git-lfs's API.
const (
	GitRefs  GitKind = iota + 1 // which refs a repository has
	GitFetch                    // git-upload-pack: objects are read
	GitPush                     // git-receive-pack: its body says which refs
	LFSBatch                    // where objects are; its body says whether to read or to write
	LFSGet                      // one object
	LFSPut                      // one object, or word that it was sent
)

// GitRequest is a request of git for a repository.
type GitRequest struct {
	Kind GitKind
	// Repository is its path, without slashes at its ends and without ".git".
	Repository string
	// Writes: it pushes or is part of a push. For LFSBatch the body decides, too.
	Writes bool
}

// The services that a client asks for (gitprotocol-http(5)).
const (
	UploadPack  = "git-upload-pack"
	ReceivePack = "git-receive-pack"
)

var errNotGit = errors.New("it isn't one of git's requests: info/refs, git-upload-pack, git-receive-pack and those of LFS")

// Git reads a target as a request of git. An error says why it is none: then no rule has it.
func (t Target) Git(method string) (g GitRequest, err error) {
	path := strings.TrimPrefix(t.Path(), "/")
	for _, end := range []struct {
		method, path, query string
		kind                GitKind
		writes              bool
	}{
		{"GET", "/info/refs", "service=" + UploadPack, GitRefs, false},
		{"GET", "/info/refs", "service=" + ReceivePack, GitRefs, true},
		{"POST", "/" + UploadPack, "", GitFetch, false},
		{"POST", "/" + ReceivePack, "", GitPush, true},
		{"POST", ".git/info/lfs/objects/batch", "", LFSBatch, false},
		{"POST", ".git/info/lfs/verify", "", LFSPut, true},
	} {
		name, ok := strings.CutSuffix(path, end.path)
		if ok && method == end.method && t.query == end.query && (end.query != "" || !strings.Contains(t.text, "?")) {
			if strings.HasPrefix(end.path, "/") {
				name = strings.TrimSuffix(name, ".git")
			}
			g = GitRequest{end.kind, name, end.writes}
			break
		}
	}
	if g.Kind == 0 {
		if g = t.lfsObject(method, path); g.Kind == 0 {
			return g, errNotGit
		}
	}
	if err := checkRepository(strings.Split(g.Repository, "/")); err != nil {
		return GitRequest{}, err
	}
	return g, nil
}

// lfsObject reads the address of an object, as Gitea, Forgejo and GitLab have it: by its
// SHA-256, and for one that is sent by its size.
func (t Target) lfsObject(method, path string) (g GitRequest) {
	for _, between := range []string{".git/info/lfs/objects/", ".git/gitlab-lfs/objects/"} {
		name, object, ok := strings.Cut(path, between)
		id, size, sized := strings.Cut(object, "/")
		switch {
		case !ok || t.query != "" || strings.Contains(t.text, "?") || !IsLFSObject(id) || sized && (size == "" || len(size) > 19 || strings.Trim(size, "0123456789") != ""):
		case method == "GET":
			return GitRequest{LFSGet, name, false}
		case method == "PUT":
			return GitRequest{LFSPut, name, true}
		}
	}
	return g
}

// IsLFSObject reports whether id is the SHA-256 of an object of LFS.
func IsLFSObject(id string) bool { return len(id) == 64 && strings.Trim(id, "0123456789abcdef") == "" }

// Match reports whether the rules have a request, as far as its target says.
func (g Git) Match(r GitRequest) bool {
	switch {
	case r.Kind == LFSPut:
		return g.Pushes(r.Repository)
	case r.Writes:
		return g.Writes(r.Repository)
	}
	return g.Reads(r.Repository)
}
