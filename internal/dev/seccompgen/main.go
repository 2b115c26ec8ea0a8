// Seccompgen writes the filters of package internal/engine/namespace/seccomp: what
// libseccomp and runc make of the profile when a container starts, made once, in Go
// and without a kernel.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"log"
	"os"

	"github.com/llmdo/workshop/compose"
)

func main() {
	files, err := generated(compose.SeccompProfile())
	if err != nil {
		log.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generated are the files of the package: a filter for each architecture, and which
// profile they are of.
func generated(profile []byte) (map[string][]byte, error) {
	sum := sha256.Sum256(profile)
	files := map[string][]byte{"profile.sha256": []byte(hex.EncodeToString(sum[:]) + "\n")}
	for arch := range architectures {
		filter, err := compile(profile, arch)
		if err != nil {
			return nil, err
		}
		files["filter_"+arch+".bin"] = filter
	}
	return files, nil
}
