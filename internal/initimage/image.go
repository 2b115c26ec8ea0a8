package initimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// EntryPoint is the program's path in the image.
const EntryPoint = "/workshop-init"

// Repository is the name of the image; its tag is the start of its ID.
const Repository = "workshop-init"

// Image is the workshop-init image for `docker load`. Both IDs are derived from its
// content, so an engine can be asked for it before it is sent.
type Image struct {
	// ID is "sha256:" and the digest of the configuration: the image's ID in
	// engines with graph drivers.
	ID string
	// ManifestID is the digest of the manifest: the image's ID in engines with the
	// containerd image store.
	ManifestID string
	// Ref is the human-readable name.
	Ref string
	// Tar is a docker-save archive (manifest.json) and also an OCI image layout
	// (index.json).
	Tar []byte
}

// Image returns the image for arch: nothing but the program, the mount points
// that services need on a read-only root, and a passwd with two names.
func (s *Set) Image(arch string) (*Image, error) {
	data, err := s.Binary(arch)
	if err != nil {
		return nil, err
	}
	return NewImage(arch, data)
}

// directories are the mount points; a new volume gets their mode and owner.
var directories = []string{
	"bin", "dev", "etc", "etc/workshop", "home", "home/worker", "lib", "lib64", "opt", "opt/workshop",
	"proc", "run", "run/outlet", "run/secrets", "run/workshop", "sbin", "scratch", "sys", "tmp", "usr", "var", "var/tmp", "workspace",
}

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nguard:x:65532:65532:guard:/:/sbin/nologin\noutlet:x:65531:65531:outlet:/:/sbin/nologin\n"
	group  = "root:x:0:\nguard:x:65532:\noutlet:x:65531:\n"

	outlet = 65531 // uid and gid
)

type descriptor struct {
	MediaType string            `json:"mediaType"`
	Digest    string            `json:"digest"`
	Size      int               `json:"size"`
	Platform  *platform         `json:"platform,omitempty"`
	Notes     map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// Label is on the image, with LabelValue.
const (
	Label      = "dev.llmdo.workshop.image"
	LabelValue = "init"
)

// NewImage makes the image of a program. It is reproducible: without times and names of
// the machine.
func NewImage(arch string, program []byte) (*Image, error) {
	layer, err := layerTar(program)
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	layerID := digest(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": arch,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": []string{EntryPoint},
			"Labels":     map[string]string{Label: LabelValue},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerID}},
	})
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	configID := digest(config)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"config":        descriptor{MediaType: "application/vnd.oci.image.config.v1+json", Digest: configID, Size: len(config)},
		"layers":        []descriptor{{MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: layerID, Size: len(layer)}},
	})
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	ref := Repository + ":" + configID[len("sha256:"):][:12]
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.index.v1+json",
		"manifests": []descriptor{{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: digest(manifest), Size: len(manifest),
			Platform: &platform{Architecture: arch, OS: "linux"},
			Notes:    map[string]string{"io.containerd.image.name": "docker.io/library/" + ref, "org.opencontainers.image.ref.name": ref[len(Repository)+1:]},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	legacy, err := json.Marshal([]map[string]any{{
		"Config": blob(configID), "RepoTags": []string{ref}, "Layers": []string{blob(layerID)},
	}})
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"blobs", "blobs/sha256"} {
		err = add(w, err, dir+"/", tar.TypeDir, 0o755, nil)
	}
	err = add(w, err, blob(configID), tar.TypeReg, 0o644, config)
	err = add(w, err, blob(layerID), tar.TypeReg, 0o644, layer)
	err = add(w, err, blob(digest(manifest)), tar.TypeReg, 0o644, manifest)
	err = add(w, err, "index.json", tar.TypeReg, 0o644, index)
	err = add(w, err, "manifest.json", tar.TypeReg, 0o644, legacy)
	err = add(w, err, "oci-layout", tar.TypeReg, 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("workshop-init image: %w", err)
	}
	return &Image{ID: configID, ManifestID: digest(manifest), Ref: ref, Tar: b.Bytes()}, nil
}

func layerTar(program []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	var err error
	for _, dir := range directories {
		mode, owner := int64(0o755), 0
		switch dir {
		case "run/outlet": // where it makes its socket
			owner = outlet
		case "tmp", "var/tmp", "scratch", "home/worker": // runc before 1.1.8 gives a tmpfs the mode of what it covers
			mode = 0o1777
		}
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner})
		}
	}
	err = add(w, err, "etc/group", tar.TypeReg, 0o644, []byte(group))
	err = add(w, err, "etc/passwd", tar.TypeReg, 0o644, []byte(passwd))
	err = add(w, err, EntryPoint[1:], tar.TypeReg, 0o755, program)
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

func add(w *tar.Writer, err error, name string, kind byte, mode int64, data []byte) error {
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func blob(id string) string { return "blobs/sha256/" + id[len("sha256:"):] }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
