//go:build linux

package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/llmdo/workshop/internal/image/reference"
)

// aRegistry is a registry on localhost. each, if given, sees requests first and
// reports whether it has answered.
func aRegistry(t *testing.T, each func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Test") == "" && each != nil && each(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// send does one request to a registry.
func send(t *testing.T, method, url, kind string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Test", "1")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	w.Body.Close()
	if w.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, url, w.Status)
	}
}

// push puts an image there, under tags.
func push(t *testing.T, host, repo string, img *testImage, tags ...string) {
	t.Helper()
	base := "http://" + host + "/v2/" + repo
	for _, b := range append(slices.Clone(img.layers), img.config) {
		send(t, "POST", base+"/blobs/uploads/?digest="+digestOf(b), "application/octet-stream", b)
	}
	for _, tag := range append(tags, digestOf(img.manifest)) {
		send(t, "PUT", base+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", img.manifest)
	}
}

// noConfig keeps the user's own Docker configuration out.
func noConfig(t *testing.T) Options {
	dir := t.TempDir()
	return Options{Lookup: func(name string) (string, bool) { return dir, name == "DOCKER_CONFIG" }}
}

func content(t *testing.T, s *Store, r reference.Ref, p Policy) string {
	t.Helper()
	img, err := s.Get(t.Context(), r, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(tree(t, img.RootFS), ", ")
}

func TestPull(t *testing.T) {
	var requests atomic.Int64
	host := aRegistry(t, func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false })
	var layers [][]byte
	for i := range 7 {
		layers = append(layers, layerOf(t, file(fmt.Sprint("f", i), "1")))
	}
	one, two := imageOf(t, gzipped, nil, layers...), imageOf(t, zstdTar, nil, layerOf(t, file("f", "2")))
	far := imageOf(t, gzipped, func(c map[string]any) { c["architecture"] = "s390x" }, layers[0])
	push(t, host, "acme/worker", one, "1", "again")
	push(t, host, "acme/worker", two, "2")
	push(t, host, "acme/worker", far)
	for tag, list := range map[string][]any{"both": {far.entryOf("", "s390x"), two.entryOf("", runtime.GOARCH)}, "far": {far.entryOf("", "s390x"), far.entryOf("", "ppc64le")}} {
		send(t, "PUT", "http://"+host+"/v2/acme/worker/manifests/"+tag, "application/vnd.oci.image.index.v1+json", marshal(t, map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": list}))
	}
	const first = "f0: 1, f1: 1, f2: 1, f3: 1, f4: 1, f5: 1, f6: 1"
	s := openStore(t, noConfig(t))
	r := ref(t, host+"/acme/worker:1")
	if img, err := s.Lookup(t.Context(), r); img != nil || err != nil || requests.Load() != 0 {
		t.Errorf("%v, %v, %d requests", img, err, requests.Load())
	}
	_, err := s.Get(t.Context(), r, Never, nil)
	if _, ok := err.(*NotStoredError); !ok || requests.Load() != 0 {
		t.Errorf("%v, %d requests", err, requests.Load())
	}
	var seen, total int64
	img, err := s.Get(t.Context(), r, Missing, func(c, n int64, _ string) { seen, total = c, n })
	if err != nil || seen != total || total == 0 {
		t.Fatalf("%v, %d of %d", err, seen, total)
	}
	if have := strings.Join(tree(t, img.RootFS), ", "); have != first || img.ID != digestOf(one.config) {
		t.Errorf("%q, %s", have, img.ID)
	}
	// What is there is not asked for again, and of another name only its manifest.
	before := requests.Load()
	for _, p := range []Policy{Missing, Never} {
		if have := content(t, s, r, p); have != first || requests.Load() != before {
			t.Errorf("%s: %q, %d requests", p, have, requests.Load()-before)
		}
	}
	if have := content(t, s, ref(t, host+"/acme/worker:again"), Missing); have != first {
		t.Error(have)
	}
	leftovers(t, s, 1)
	if have := content(t, s, ref(t, host+"/acme/worker@"+digestOf(two.manifest)), Missing); have != "f: 2" {
		t.Error(have)
	}
	if have := content(t, s, ref(t, host+"/acme/worker:both"), Missing); have != "f: 2" {
		t.Error(have)
	}
	// The tag moves: only `always` sees it.
	push(t, host, "acme/worker", two, "1")
	if have := content(t, s, r, Missing); have != first {
		t.Error(have)
	}
	if have := content(t, s, r, Always); have != "f: 2" {
		t.Error(have)
	}
	if have := content(t, s, r, Never); have != "f: 2" {
		t.Error(have)
	}
	for name, want := range map[string]string{":far": `only for "linux/ppc64le", "linux/s390x"`, ":none": "check name and tag", "@" + digestOf(nil): "check name and tag"} {
		if _, err := s.Get(t.Context(), ref(t, host+"/acme/worker"+name), "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	leftovers(t, s, 2)
}

// TestRegistryLies: what comes isn't what was asked for.
func TestRegistryLies(t *testing.T) {
	good, evil := imageOf(t, gzipped, nil, layerOf(t, file("f", "1"))), imageOf(t, gzipped, nil, layerOf(t, file("f", "2")))
	for name, swap := range map[string][2][]byte{"manifest": {good.manifest, evil.manifest}, "config": {good.config, evil.config}, "layer": {good.layers[0], evil.layers[0]}} {
		host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, digestOf(swap[0])) {
				return false
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Write(swap[1])
			return true
		})
		push(t, host, "w", good)
		s := openStore(t, noConfig(t))
		img, err := s.Get(t.Context(), ref(t, host+"/w@"+digestOf(good.manifest)), "", nil)
		if err == nil {
			t.Errorf("%s: %+v", name, img)
		}
		leftovers(t, s, 0)
	}
}

// TestBrokenPull: a body that ends early is asked for again.
func TestBrokenPull(t *testing.T) {
	img := imageOf(t, plainTar, nil, layerOf(t, file("f", strings.Repeat("x", 100_000))))
	var broken atomic.Int64
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digestOf(img.layers[0])) || broken.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(img.layers[0])))
		w.Write(img.layers[0][:50_000])
		panic(http.ErrAbortHandler)
	})
	push(t, host, "w", img, "1")
	s := openStore(t, noConfig(t))
	var seen, total int64
	if _, err := s.Get(t.Context(), ref(t, host+"/w:1"), "", func(c, n int64, _ string) { seen, total = c, n }); err != nil || seen != total {
		t.Errorf("%v, %d of %d", err, seen, total)
	}
	if broken.Load() < 2 {
		t.Errorf("asked for %d times", broken.Load())
	}
}

// TestCanceled: Get ends with its context and leaves nothing.
func TestCanceled(t *testing.T) {
	img := imageOf(t, plainTar, nil, layerOf(t, file("f", "1")))
	ctx, cancel := context.WithCancel(t.Context())
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, digestOf(img.layers[0])) {
			cancel()
			<-r.Context().Done()
		}
		return false
	})
	push(t, host, "w", img, "1")
	s := openStore(t, noConfig(t))
	if _, err := s.Get(ctx, ref(t, host+"/w:1"), "", nil); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
	leftovers(t, s, 0)
}

// TestCredentials: those of Docker's configuration, for their registry alone.
func TestCredentials(t *testing.T) {
	img := imageOf(t, gzipped, nil, layerOf(t, file("f", "1")))
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	push(t, host, "w", img, "1")
	o := noConfig(t)
	_, err := openStore(t, o).Get(t.Context(), ref(t, host+"/w:1"), "", nil)
	if err == nil || !strings.Contains(err.Error(), "run `docker login "+host+"`") {
		t.Errorf("without: %v", err)
	}
	dir, _ := o.Lookup("DOCKER_CONFIG")
	for name, ok := range map[string]bool{host: true, "other.example.org": false} {
		write(t, filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, name, base64.StdEncoding.EncodeToString([]byte("me:secret"))))
		if _, err := openStore(t, o).Get(t.Context(), ref(t, host+"/w:1"), "", nil); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, filepath.Join(dir, "config.json"), []byte("{"))
	if _, err := openStore(t, o).Get(t.Context(), ref(t, host+"/w:1"), "", nil); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("damaged: %v", err)
	}
}

// TestPlainHTTP: only to this machine.
func TestPlainHTTP(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "10.0.0.1": false, "192.168.1.1": false, "registry.local": false, "localhost.example.org": false, "": false} {
		if got := loopback(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	// The library would ask private addresses and .local without TLS.
	var dialed atomic.Int64
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		dialed.Add(1)
		return nil, io.EOF
	}}
	for _, url := range []string{"http://10.0.0.1:5000/v2/", "http://registry.local/v2/", "http://example.org/token"} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if _, err := (secure{tr, "localhost"}).RoundTrip(r); err == nil || !strings.Contains(err.Error(), "without TLS") {
			t.Errorf("%s: %v", url, err)
		}
	}
	// Nor does one elsewhere lead to this machine, whatever the scheme.
	for _, url := range []string{"http://localhost:1/x", "https://127.0.0.1:1/x", "http://LOCALHOST./x", "https://a.localhost/x", "http://[::1]:1/x", "http://[::ffff:127.0.0.1]/x", "http://0.0.0.0/x", "http://[::]/x"} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if _, err := (secure{tr, "registry.example.org:5000"}).RoundTrip(r); err == nil || !strings.Contains(err.Error(), "is this machine") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if dialed.Load() != 0 {
		t.Errorf("%d connections", dialed.Load())
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://[::1]:5000/v2/", nil)
	if _, err := (secure{tr, "localhost:5000"}).RoundTrip(r); err == nil || dialed.Load() != 1 {
		t.Errorf("a registry of this machine isn't asked: %v", err)
	}
}

// TestUnreachable: errors for people.
func TestUnreachable(t *testing.T) {
	s := openStore(t, noConfig(t))
	for name, want := range map[string]string{
		"127.0.0.1:1/w:1":                "the registry 127.0.0.1:1 can't be reached",
		"registry.invalid/w:1":           "docker-archive:FILE",
		"127.0.0.1:1/w@" + digestOf(nil): "docker-archive:FILE",
	} {
		if _, err := s.Get(t.Context(), ref(t, name), "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	leftovers(t, s, 0)
}
