package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/image/reference"
)

// layout reads an OCI image layout (OCI image specification, image-layout.md). A worker
// may be able to write there: links can't lead out of it, and only regular files are
// opened.
type layout struct{ root *os.Root }

// refName is the annotation with the name of an image in an index.
const refName = "org.opencontainers.image.ref.name"

func openLayout(dir string) (*layout, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("its image layout can't be opened: %w", err)
	}
	return &layout{root}, nil
}

func (l *layout) Close() error { return l.root.Close() }

// regular opens a regular file; a FIFO would block for ever.
func (l *layout) regular(name string) (*os.File, error) {
	f, err := l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return onlyRegular(f)
}

func onlyRegular(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (l *layout) blob(_ context.Context, d descriptor) (io.ReadCloser, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	f, err := l.regular("blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the image layout lacks the blob %s", d.Digest)
	}
	return f, err
}

func (l *layout) manifest(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	return l.blob(ctx, d)
}

// small reads a file of the layout that has no digest.
func (l *layout) small(name string) ([]byte, error) {
	f, err := l.regular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("not an OCI image layout: it has no %s", name)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%s has more than %d bytes", name, maxManifest)
	}
	return data, err
}

// resolve finds the image of a reference.
func (l *layout) resolve(ctx context.Context, ref reference.Ref, arch string, limits Limits) (*found, error) {
	about, err := l.small("oci-layout")
	if err != nil {
		return nil, err
	}
	var version struct{ ImageLayoutVersion string }
	if err := json.Unmarshal(about, &version); err != nil || version.ImageLayoutVersion != "1.0.0" {
		return nil, fmt.Errorf("image layout version %.20q is not supported, want 1.0.0", version.ImageLayoutVersion)
	}
	data, err := l.small("index.json")
	if err != nil {
		return nil, err
	}
	if got := digestOf(data); ref.Content != "" && got != ref.Content {
		return nil, &DigestError{What: "its index.json", Want: ref.Content, Got: got}
	}
	index, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	d, err := pickLayout(index.Manifests, ref, arch)
	if err != nil {
		return nil, err
	}
	if data, err = fetch(ctx, l.manifest, "the manifest "+d.Digest, *d, maxManifest); err != nil {
		return nil, err
	}
	return resolve(ctx, l, data, arch, limits)
}

// pickLayout returns the image by digest, by tag, or the only one.
func pickLayout(list []descriptor, ref reference.Ref, arch string) (*descriptor, error) {
	var names []string
	var fit []descriptor
	for _, d := range list {
		name := d.Annotations[refName]
		if name != "" {
			names = append(names, fmt.Sprintf("%q", name))
		}
		switch {
		case ref.Digest != "" && d.Digest != ref.Digest, ref.Name != "" && name != ref.Name:
			continue
		}
		if !slices.ContainsFunc(fit, func(f descriptor) bool { return f.Digest == d.Digest }) {
			fit = append(fit, d)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	has := "its images have no tags"
	if len(names) > 0 {
		has = "it has " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	switch {
	case len(fit) == 0:
		return nil, fmt.Errorf("the image layout has no such image: %s", has)
	case len(fit) == 1:
		return &fit[0], nil
	}
	// Several of one name are one image for several platforms.
	if len(names) <= 1 || ref.Name != "" {
		return choose(fit, arch)
	}
	return nil, fmt.Errorf("the image layout has several images: write oci:DIR:TAG; %s", has)
}
