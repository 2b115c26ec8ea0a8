//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// toolsImage holds some programs of this machine with their libraries: what
// runs in the worker is byte for byte what the floor runs.
const toolsImage = "workshop-bench-tools:1"

const loaderCache = "/etc/ld.so.cache"

func (b *bench) importTools(docker *client.Client) error {
	files := map[string]string{} // in the image: here
	for _, name := range []string{"/bin/true", "/bin/sh", "/bin/cat", "/usr/bin/head", "/usr/bin/tr"} {
		files[name] = name
		libraries, err := exec.CommandContext(b.ctx, "ldd", name).Output() // fails for a static one
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(libraries)) {
			if filepath.IsAbs(word) {
				files[word] = word
			}
		}
	}
	// Without it the loader looks into forty directories before each start.
	if cache, err := os.Stat(loaderCache); err == nil && cache.Mode().IsRegular() {
		files[loaderCache] = loaderCache
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{"/": true}
	var directory func(string) error
	directory = func(name string) error {
		if made[name] {
			return nil
		}
		if err := directory(filepath.Dir(name)); err != nil {
			return err
		}
		made[name] = true
		return w.WriteHeader(&tar.Header{Name: name[1:] + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := directory(filepath.Dir(name)); err != nil {
			return err
		}
		data, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name[1:], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	r, err := docker.ImageImport(b.ctx, image.ImportSource{Source: &out, SourceName: "-"}, toolsImage, image.ImportOptions{})
	if err != nil {
		return err
	}
	return drain(r)
}
