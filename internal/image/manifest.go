package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// descriptor identifies a blob (OCI image specification, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
}

func (p *platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

// document is a manifest, or an index of them.
type document struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
	Manifests     []descriptor `json:"manifests"`
}

func (d *document) isIndex() bool { return len(d.Manifests) > 0 }

// configuration of an image (OCI image specification, config.md).
type configuration struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Env        []string
		WorkingDir string
		User       string
		Volumes    map[string]struct{}
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// found is an image found in a source: everything except its layers' content.
type found struct {
	id     string // digest of the configuration
	config Config
	layers []layer
}

// checkSize bounds the bytes read of all layers, or pulled to the disk: compressed
// layers aren't larger than unpacked ones, but zstd may have skippable frames, and
// there may be trailing data.
func (f *found) checkSize(limits Limits) error {
	left := limits.archives()
	for i := range f.layers {
		if left -= min(f.layers[i].blob.Size, limits.archives()); left < 0 {
			return fmt.Errorf("its layers have more than the %d bytes that an image may have", limits.Bytes)
		}
	}
	return nil
}

// layer is one layer of a found image.
type layer struct {
	blob   descriptor // Digest is empty if only the unpacked layer has one
	diffID string
	remote bool                                             // it is worth pulling ahead
	open   func(ctx context.Context) (io.ReadCloser, error) // as it is stored, unchecked
}

// blobs opens the content of descriptors, unverified.
type blobs interface {
	manifest(ctx context.Context, d descriptor) (io.ReadCloser, error)
	blob(ctx context.Context, d descriptor) (io.ReadCloser, error)
}

// The media types of image layers and configurations.
var (
	layerTypes = []string{
		"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.docker.image.rootfs.diff.tar.zstd",
	}
	configTypes = []string{"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)

// parseDocument parses a verified manifest or index.
func parseDocument(data []byte) (*document, error) {
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("its manifest is damaged: %w", err)
	}
	if doc.SchemaVersion != 2 {
		return nil, fmt.Errorf("manifest version %d is not supported, want 2: push it again with a current tool", doc.SchemaVersion)
	}
	if doc.isIndex() == (doc.Config.Digest != "" || len(doc.Layers) > 0) {
		return nil, errors.New("its manifest is not an image manifest or index")
	}
	for _, list := range [][]descriptor{doc.Layers, doc.Manifests, {doc.Config}} {
		for _, d := range list {
			if err := checkDigest(d.Digest); err != nil && d.Digest+d.MediaType != "" {
				return nil, fmt.Errorf("its manifest: %w", err)
			}
		}
	}
	return &doc, nil
}

// resolve returns the image that a manifest or index leads to for an architecture.
func resolve(ctx context.Context, b blobs, data []byte, arch string, limits Limits) (*found, error) {
	for range maxNesting {
		doc, err := parseDocument(data)
		if err != nil {
			return nil, err
		}
		if !doc.isIndex() {
			return resolveImage(ctx, b, doc, arch, limits)
		}
		d, err := choose(doc.Manifests, arch)
		if err != nil {
			return nil, err
		}
		if data, err = fetch(ctx, b.manifest, "the manifest "+d.Digest, *d, maxManifest); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d nested indexes", maxNesting)
}

// fetch reads a small blob and verifies it.
func fetch(ctx context.Context, open func(context.Context, descriptor) (io.ReadCloser, error), what string, d descriptor, limit int64) ([]byte, error) {
	r, err := open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readVerified(r, what, d, limit)
}

// choose picks the manifest for an architecture from an index.
func choose(list []descriptor, arch string) (*descriptor, error) {
	var best *descriptor
	var have []string
	for i := range list {
		d := &list[i]
		if d.Platform == nil && len(list) == 1 {
			return d, nil // its configuration has the platform
		}
		if d.Platform == nil || d.Platform.OS == "unknown" { // an attestation
			continue
		}
		have = append(have, fmt.Sprintf("%q", d.Platform))
		if d.Platform.OS != "linux" || d.Platform.Architecture != arch {
			continue
		}
		// The lowest variant runs everywhere: amd64 before amd64/v3.
		if best == nil || d.Platform.Variant < best.Platform.Variant {
			best = d
		}
	}
	if best == nil {
		slices.Sort(have)
		return nil, &PlatformError{Want: "linux/" + arch, Have: slices.Compact(have)}
	}
	return best, nil
}

// PlatformError means that an image isn't available for this machine's platform.
type PlatformError struct {
	Want string
	Have []string // quoted
}

// Error lists the available platforms.
func (e *PlatformError) Error() string {
	have := "unknown platforms"
	if len(e.Have) > 0 {
		have = strings.Join(e.Have[:min(len(e.Have), 20)], ", ")
	}
	return fmt.Sprintf("not available for %s, only for %s: build or choose one for this machine", e.Want, have)
}

func resolveImage(ctx context.Context, b blobs, doc *document, arch string, limits Limits) (*found, error) {
	if !slices.Contains(configTypes, doc.Config.MediaType) {
		return nil, fmt.Errorf("not a container image, but an artifact of type %.80q", doc.Config.MediaType)
	}
	data, err := fetch(ctx, b.blob, "the configuration "+doc.Config.Digest, doc.Config, maxConfig)
	if err != nil {
		return nil, err
	}
	c, diffIDs, err := parseConfig(data, arch)
	if err != nil {
		return nil, err
	}
	if len(diffIDs) != len(doc.Layers) {
		return nil, fmt.Errorf("it has %d layers, but its configuration lists %d", len(doc.Layers), len(diffIDs))
	}
	if len(diffIDs) > limits.Layers {
		return nil, fmt.Errorf("it has %d layers, at most %d are allowed", len(diffIDs), limits.Layers)
	}
	f := &found{id: digestOf(data), config: c}
	for i, d := range doc.Layers {
		if !slices.Contains(layerTypes, d.MediaType) {
			return nil, fmt.Errorf("layer %d: type %.80q is not supported, want tar, gzip or zstd", i+1, d.MediaType)
		}
		if d.Size < 0 {
			return nil, fmt.Errorf("layer %d has %d bytes", i+1, d.Size)
		}
		f.layers = append(f.layers, layer{blob: d, diffID: diffIDs[i], open: func(ctx context.Context) (io.ReadCloser, error) { return b.blob(ctx, d) }})
	}
	return f, nil
}

// parseConfig parses a verified configuration.
func parseConfig(data []byte, arch string) (Config, []string, error) {
	var c configuration
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, nil, fmt.Errorf("its configuration is damaged: %w", err)
	}
	// Simple tools that build images from scratch don't set it.
	if p := (platform{OS: c.OS, Architecture: c.Architecture}); c.OS != "" && c.OS != "linux" || c.Architecture != "" && c.Architecture != arch {
		return Config{}, nil, &PlatformError{Want: "linux/" + arch, Have: []string{fmt.Sprintf("%q", &p)}}
	}
	for _, d := range c.RootFS.DiffIDs {
		if err := checkDigest(d); err != nil {
			return Config{}, nil, fmt.Errorf("its configuration: %w", err)
		}
	}
	out := Config{Env: c.Config.Env, WorkingDir: c.Config.WorkingDir, User: c.Config.User, Volumes: slices.Sorted(maps.Keys(c.Config.Volumes))}
	if len(out.Env) > maxEnv || len(out.Volumes) > maxEnv {
		return Config{}, nil, fmt.Errorf("its configuration has more than %d variables or volumes", maxEnv)
	}
	for _, text := range slices.Concat(out.Env, out.Volumes, []string{out.WorkingDir, out.User}) {
		if len(text) > maxText || strings.ContainsRune(text, 0) {
			return Config{}, nil, fmt.Errorf("its configuration has a text that is too long, or has a zero byte: %.40q", text)
		}
	}
	for _, e := range out.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return Config{}, nil, fmt.Errorf("its configuration has the invalid variable %.40q", e)
		}
	}
	for i, v := range out.Volumes {
		out.Volumes[i] = path.Join("/", v)
	}
	if out.WorkingDir != "" { // relative ones are relative to the root, as in Docker
		out.WorkingDir = path.Join("/", out.WorkingDir)
	}
	return out, c.RootFS.DiffIDs, nil
}
