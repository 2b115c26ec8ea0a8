package engine

import (
	"errors"
	"strings"
	"testing"
)

func TestRefuseImageFiles(t *testing.T) {
	if err := RefuseImageFiles("docker", "debian:12", "host", "workshop-init:0123456789ab", "sha256:"+strings.Repeat("a", 64), ""); err != nil {
		t.Error(err)
	}
	for image, hint := range map[string]string{
		"oci:./images:1":                            "skopeo copy oci:./images:1 docker-daemon:",
		"docker-archive:./w.tar":                    "docker load -i ./w.tar`",
		"oci:./i#sha256:" + strings.Repeat("a", 64): "image oci:./i: the docker engine can't read images from files: set `isolation: namespace`, or load it with `skopeo copy oci:./i docker-daemon:",
	} {
		err := RefuseImageFiles("docker", "debian:12", image)
		var refused *ImageSourceError
		if !errors.As(err, &refused) || refused.ExitCode() != 4 || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "isolation: namespace") {
			t.Errorf("%s: %v", image, err)
		}
	}
}
