package source

import (
	"errors"
	"strings"

	"github.com/llmdo/workshop/internal/image/reference"
)

// ociScheme begins a source that is a repository of a registry.
const ociScheme = "oci"

// ociMark ends the name of such a source. No repository of git has a colon in its path, so
// that the two are never one, and a pattern of HOST/PATH matches both.
const ociMark = "/:" + ociScheme

// parseOCI reads REGISTRY/REPOSITORY.
func parseOCI(text string) (ID, error) {
	host, path, _ := strings.Cut(text, "/")
	switch {
	case strings.Contains(text, "//"):
		return ID{}, errors.New("a source of a registry has no directory: want oci://REGISTRY/REPOSITORY")
	case strings.ContainsAny(path, ":@"):
		return ID{}, errors.New("its tag or digest is the version: want oci://REGISTRY/REPOSITORY and `version:`")
	case strings.Contains(host, "@"):
		return ID{}, errors.New("it has credentials; those of `docker login` are used")
	case path == "" || !strings.ContainsAny(host, ".:") && host != "localhost":
		return ID{}, errors.New("want oci://REGISTRY/REPOSITORY")
	}
	ref, err := reference.Parse(strings.ToLower(host) + "/" + path)
	if err != nil || strings.ContainsFunc(ref.Name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return ID{}, errors.New("want oci://REGISTRY/REPOSITORY, in lower case")
	}
	host, path, _ = strings.Cut(strings.TrimSuffix(ref.Name, ":latest"), "/")
	return ID{scheme: ociScheme, host: strings.TrimSuffix(host, ":443"), path: path}, nil
}
