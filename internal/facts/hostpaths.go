package facts

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// hostDirs and hostFiles are the paths of the machine in `image: host`: its programs
// and the files of /etc that they read, without keys, accounts and settings that may
// contain credentials.
var (
	hostDirs  = []string{"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32"}
	hostFiles = []string{
		"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/debian_version", "/etc/fonts",
		"/etc/gai.conf", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
		"/etc/nsswitch.conf", "/etc/os-release", "/etc/pki/ca-trust", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs", "/etc/protocols",
		"/etc/services", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
	}
	hostPatterns = []string{"/etc/java*", "/etc/perl", "/etc/python3*"}
)

// InHostImage reports whether `image: host` has a path, which is absolute and clean, or
// what is around it.
func InHostImage(p string) bool {
	return slices.ContainsFunc(hostDirs, func(dir string) bool { return subpath.Within(p, dir) })
}

// HostPaths returns the read-only binds of `image: host` below root ("/" except in
// tests), each at its own path. It includes the mounts below the directories, as a
// bind covers one file system.
func HostPaths(root string) []string {
	at := func(p string) string { return filepath.Join(root, p) }
	var out []string
	if _, err := os.Stat(at("/usr/bin")); err != nil {
		return nil
	}
	candidates := slices.Concat(hostDirs, hostFiles)
	for _, p := range hostPatterns {
		matches, _ := filepath.Glob(at(p))
		for _, m := range matches {
			candidates = append(candidates, path.Join("/", strings.TrimPrefix(filepath.ToSlash(m), filepath.ToSlash(filepath.Clean(root)))))
		}
	}
	for _, p := range candidates {
		if _, err := os.Stat(at(p)); err == nil {
			out = append(out, p)
		}
	}
	if root == "/" {
		points, _ := mountPoints()
		for _, p := range below(points, "/usr") {
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
