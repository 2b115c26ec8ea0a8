//go:build linux

package image

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/image/reference"
)

// What a registry has is found without pulling any of it, and "there is none" is told
// from "nobody answers".
func TestLookUp(t *testing.T) {
	blobs := 0
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			blobs++
		}
		if r.URL.Path == "/v2/acme/closed/manifests/1" {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	img := imageOf(t, gzipped, nil, layerOf(t, file("f", "1")))
	push(t, host, "acme/worker", img, "1.4")
	manifest := digestOf(img.manifest)
	index := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64"}},
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d,"platform":{"os":"unknown","architecture":"unknown"}}]}`,
		manifest, len(img.manifest), manifest, len(img.manifest))
	send(t, "PUT", "http://"+host+"/v2/acme/worker/manifests/2", "application/vnd.oci.image.index.v1+json", index)
	for _, c := range []struct {
		ref  string
		want Digests
		none bool
	}{
		{ref: "acme/worker:1.4", want: Digests{Digest: manifest}},
		{ref: "acme/worker:2", want: Digests{Digest: digestOf(index), Platforms: map[string]string{"linux/amd64": manifest}}},
		{ref: "acme/worker:3", none: true},
		{ref: "acme/nothing:1", none: true},
		{ref: "acme/closed:1", none: true},
	} {
		ref, err := reference.Parse(host + "/" + c.ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := LookUp(t.Context(), ref, noConfig(t).Lookup)
		if errors.Is(err, ErrNotInRegistry) != c.none || (err != nil) != c.none || cmp.Diff(c.want, got) != "" {
			t.Errorf("%s: %v, %v", c.ref, got, err)
		}
	}
	if blobs > 0 {
		t.Errorf("%d blobs were asked for", blobs)
	}
	ref, err := reference.Parse("localhost:1/acme/worker:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LookUp(t.Context(), ref, noConfig(t).Lookup); err == nil || errors.Is(err, ErrNotInRegistry) {
		t.Errorf("a registry that doesn't answer: %v", err)
	}
}

// B60: a registry that stalls within a manifest is left, by a look-up and by a pull.
func TestStalledManifest(t *testing.T) {
	defer func(d time.Duration) { manifestTimeout = d }(manifestTimeout)
	manifestTimeout = 200 * time.Millisecond
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte("{"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	ref, err := reference.Parse(host + "/acme/worker:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LookUp(t.Context(), ref, noConfig(t).Lookup); err == nil || !strings.Contains(err.Error(), "took longer than") {
		t.Errorf("%v", err)
	}
	if _, err := openStore(t, noConfig(t)).Get(t.Context(), ref, Missing, nil); err == nil || !strings.Contains(err.Error(), "took longer than") {
		t.Errorf("pulled: %v", err)
	}
}
