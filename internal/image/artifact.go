package image

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Artifact is content in a registry that isn't an image: a manifest of an artifact type
// with an empty configuration and one layer (OCI image specification, manifest.md,
// "Guidelines for Artifact Usage").
type Artifact struct {
	Type string // artifactType
	// LayerType is the media type of Layer.
	LayerType string
	Layer     []byte
	// Version is the annotation org.opencontainers.image.version.
	Version string
	// Subject is the manifest that this one is about, by digest, and its size; "" for none.
	Subject     string
	SubjectSize int64
}

const (
	emptyType         = "application/vnd.oci.empty.v1+json"
	emptyConfig       = "{}"
	versionAnnotation = "org.opencontainers.image.version"

	maxArtifactManifest = 64 << 10 // bytes
)

// manifestForm is what a manifest of an artifact has, in the order in which it is written.
type manifestForm struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        descriptorForm    `json:"config"`
	Layers        []descriptorForm  `json:"layers"`
	Subject       *descriptorForm   `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type descriptorForm struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

func describe(kind string, data []byte) descriptorForm {
	return descriptorForm{MediaType: kind, Digest: digestOf(data), Size: int64(len(data))}
}

// Manifest is its manifest: the same bytes for the same content.
func (a Artifact) Manifest() []byte {
	form := manifestForm{
		SchemaVersion: 2, MediaType: string(types.OCIManifestSchema1), ArtifactType: a.Type,
		Config: describe(emptyType, []byte(emptyConfig)), Layers: []descriptorForm{describe(a.LayerType, a.Layer)},
	}
	if a.Subject != "" {
		form.Subject = &descriptorForm{string(types.OCIManifestSchema1), a.Subject, a.SubjectSize}
	}
	if a.Version != "" {
		form.Annotations = map[string]string{versionAnnotation: a.Version}
	}
	data, err := json.Marshal(form)
	if err != nil {
		panic(err) // texts and numbers alone
	}
	return data
}

// Digest identifies it: that of its manifest.
func (a Artifact) Digest() string { return digestOf(a.Manifest()) }

// ErrOtherType means that a manifest is well-formed and of something else.
var ErrOtherType = errors.New("it is something else")

// parseArtifact reads the manifest of an artifact of a type, and returns what it says of
// its layer.
func parseArtifact(data []byte, want Artifact, maxLayer int64) (Artifact, descriptor, error) {
	var form manifestForm
	var list struct {
		Manifests json.RawMessage `json:"manifests"`
	}
	if err := errors.Join(json.Unmarshal(data, &form), json.Unmarshal(data, &list)); err != nil {
		return Artifact{}, descriptor{}, fmt.Errorf("its manifest is damaged: %w", err)
	}
	switch {
	case list.Manifests != nil:
		return Artifact{}, descriptor{}, fmt.Errorf("%w: an index of manifests, want the artifact type %s", ErrOtherType, want.Type)
	case form.ArtifactType != want.Type:
		kind := form.ArtifactType
		if kind == "" {
			kind = form.Config.MediaType
		}
		return Artifact{}, descriptor{}, fmt.Errorf("%w: of type %q, want %s", ErrOtherType, clip.Bytes(kind, 80), want.Type)
	case form.SchemaVersion != 2 || form.MediaType != string(types.OCIManifestSchema1) || form.Config.MediaType != emptyType || len(form.Layers) != 1 || form.Layers[0].MediaType != want.LayerType:
		return Artifact{}, descriptor{}, fmt.Errorf("its manifest is not one of %s with one layer %s", want.Type, want.LayerType)
	}
	l := form.Layers[0]
	if err := checkDigest(l.Digest); err != nil {
		return Artifact{}, descriptor{}, fmt.Errorf("its manifest: %w", err)
	}
	if l.Size < 0 || l.Size > maxLayer {
		return Artifact{}, descriptor{}, fmt.Errorf("its content has %d bytes, at most %d are allowed", l.Size, maxLayer)
	}
	a := Artifact{Type: want.Type, LayerType: want.LayerType, Version: form.Annotations[versionAnnotation]}
	if form.Subject != nil {
		a.Subject, a.SubjectSize = form.Subject.Digest, form.Subject.Size
	}
	return a, descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}, nil
}
