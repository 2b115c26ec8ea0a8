// Package seccomp has the seccomp filters of the namespace engine's containers,
// compiled from the profile that compose sets on every service.
package seccomp

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:generate go run ../../../dev/seccompgen

//go:embed profile.sha256
var profileSum string

//go:embed filter_amd64.bin
var amd64 []byte

//go:embed filter_arm64.bin
var arm64 []byte

// Filter returns the profile's filter for one of Go's architectures: an array of
// struct sock_filter (linux/filter.h), which must not be modified. A profile other
// than the one that the filters were compiled from is an error.
func Filter(profile []byte, arch string) ([]byte, error) {
	if sum := sha256.Sum256(profile); hex.EncodeToString(sum[:]) != strings.TrimSpace(profileSum) {
		return nil, fmt.Errorf("the seccomp profile is not the one that the filters of this program were made of: `go generate ./internal/engine/namespace/seccomp`")
	}
	switch arch {
	case "amd64":
		return amd64, nil
	case "arm64":
		return arm64, nil
	}
	return nil, fmt.Errorf("there is no seccomp filter for the architecture %q", arch)
}
