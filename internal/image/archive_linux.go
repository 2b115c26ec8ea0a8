package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/image/reference"
)

// archive reads the output of `docker save` and `podman save`: a tar archive with a
// manifest.json, configurations and uncompressed layers (moby image specification
// 1.2, "Combined Image JSON + Filesystem Changeset Format").
type archive struct {
	f       *os.File
	members map[string]member
}

// member is a file of the archive, or a link to one (written by old Dockers for shared
// layers).
type member struct {
	offset, size int64
	link         string
	sum          string // of a small one of an archive that was hashed; else empty
}

// openArchive opens an archive; content is the hash that it must have, empty for any.
func openArchive(ctx context.Context, file, content string) (*archive, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("its archive can't be opened: %w", err)
	}
	if f, err = onlyRegular(f); err != nil {
		return nil, err
	}
	a := &archive{f: f, members: map[string]member{}}
	if content == "" {
		err = a.index(f, nil)
	} else {
		err = a.indexHashed(ctx, content)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

func (a *archive) Close() error { return a.f.Close() }

// indexHashed is index for an archive with an expected hash. It reads each byte once: a
// writer may change the file at any time, and what is read of it again is compared.
func (a *archive) indexHashed(ctx context.Context, content string) error {
	info, err := a.f.Stat()
	if err != nil {
		return err
	}
	all, left := sha256.New(), info.Size()
	r := io.TeeReader(&canceled{ctx, a.f}, all)
	err = a.index(r, func(t io.Reader, size int64) (string, error) {
		if size > maxConfig {
			return "", nil // only its layers are that large, which have digests
		}
		if left -= size; left < 0 {
			return "", errors.New("its archive has sparse files, which `docker save` doesn't write")
		}
		h := sha256.New()
		_, err := io.Copy(h, t)
		return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
	})
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if got := "sha256:" + hex.EncodeToString(all.Sum(nil)); err == nil && got != content {
		err = &DigestError{What: "its archive", Want: content, Got: got}
	}
	return err
}

// index records the offset of each file and skips its content, or hands it to hash.
func (a *archive) index(from io.Reader, hash func(r io.Reader, size int64) (string, error)) error {
	var head [4]byte
	if _, err := a.f.ReadAt(head[:], 0); err == nil && (head[0] == 0x1f && head[1] == 0x8b || string(head[:]) == "\x28\xb5\x2f\xfd") {
		return errors.New("its archive is compressed: unpack it with gunzip or zstd -d first")
	}
	for t, n := tar.NewReader(from), 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its archive is not a valid tar archive: %w", err)
		}
		if n >= maxMembers {
			return fmt.Errorf("its archive has more than %d files", maxMembers)
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := a.f.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			m := member{offset: at, size: h.Size}
			if hash != nil {
				if m.sum, err = hash(t, h.Size); err != nil {
					return err
				}
			}
			a.members[name] = m
		case tar.TypeSymlink:
			a.members[name] = member{link: path.Join(path.Dir(name), h.Linkname)}
		}
	}
}

// section returns a member's content, and what its digest must be, if that is known.
func (a *archive) section(name string) (*io.SectionReader, string, error) {
	for range 8 {
		m, ok := a.members[path.Clean(name)]
		if !ok {
			return nil, "", fmt.Errorf("its archive lacks %.200q", name)
		}
		if m.link == "" {
			return io.NewSectionReader(a.f, m.offset, m.size), m.sum, nil
		}
		name = m.link
	}
	return nil, "", fmt.Errorf("its archive has a loop of links at %.200q", name)
}

func (a *archive) small(name string, limit int64) ([]byte, error) {
	r, sum, err := a.section(name)
	if err != nil {
		return nil, err
	}
	if r.Size() > limit {
		return nil, fmt.Errorf("%.200q of its archive has %d bytes, at most %d are allowed", name, r.Size(), limit)
	}
	data := make([]byte, r.Size())
	if _, err = io.ReadFull(r, data); err == nil && sum != "" && digestOf(data) != sum {
		err = &DigestError{What: fmt.Sprintf("%.200q of its archive", name), Want: sum, Got: digestOf(data)}
	}
	return data, err
}

// saved is one image of a manifest.json.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func (a *archive) resolve(_ context.Context, ref reference.Ref, arch string, limits Limits) (*found, error) {
	data, err := a.small("manifest.json", maxManifest)
	if err != nil {
		return nil, fmt.Errorf("not written by `docker save`: %w", err)
	}
	var list []saved
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("its archive's manifest.json is damaged: %w", err)
	}
	s, err := pickSaved(list, ref)
	if err != nil {
		return nil, err
	}
	if data, err = a.small(s.Config, maxConfig); err != nil {
		return nil, err
	}
	id := digestOf(data)
	// Configurations are named by their digests: HEX.json, blobs/sha256/HEX.
	if sum := strings.TrimSuffix(path.Base(s.Config), ".json"); checkDigest("sha256:"+sum) == nil && id != "sha256:"+sum {
		return nil, &DigestError{What: "its configuration", Want: "sha256:" + sum, Got: id}
	}
	c, diffIDs, err := parseConfig(data, arch)
	if err != nil {
		return nil, err
	}
	if len(diffIDs) != len(s.Layers) {
		return nil, fmt.Errorf("its archive has %d layers, but its configuration lists %d", len(s.Layers), len(diffIDs))
	}
	if len(diffIDs) > limits.Layers {
		return nil, fmt.Errorf("it has %d layers, at most %d are allowed", len(diffIDs), limits.Layers)
	}
	f := &found{id: id, config: c}
	for i, name := range s.Layers {
		r, _, err := a.section(name)
		if err != nil {
			return nil, err
		}
		f.layers = append(f.layers, layer{
			blob: descriptor{Size: r.Size()}, diffID: diffIDs[i],
			open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.NewSectionReader(r, 0, r.Size())), nil
			},
		})
	}
	return f, nil
}

// pickSaved returns the image with the reference's name, or the only one.
func pickSaved(list []saved, ref reference.Ref) (*saved, error) {
	var names []string
	for i := range list {
		for _, tag := range list[i].RepoTags {
			if r, err := reference.Parse(tag); err == nil && r.Kind == reference.Registry && r.Name == ref.Name {
				return &list[i], nil
			}
			names = append(names, fmt.Sprintf("%q", tag))
		}
	}
	has := "it names none"
	if len(names) > 0 {
		slices.Sort(names)
		has = "it has " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	switch {
	case ref.Name != "":
		return nil, fmt.Errorf("the archive has no such image: %s", has)
	case len(list) == 1:
		return &list[0], nil
	}
	return nil, fmt.Errorf("the archive has %d images: write docker-archive:FILE:NAME:TAG; %s", len(list), has)
}
