//go:build linux

package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
)

var (
	things   = Artifact{Type: "application/vnd.example.thing.v1", LayerType: "application/vnd.example.thing.files.v1+json"}
	opinions = Artifact{Type: "application/vnd.example.opinion.v1", LayerType: "text/plain"}
)

const mostBytes = 1 << 20

// thing is an artifact with a content.
func thing(content string) Artifact {
	a := things
	a.Layer, a.Version = []byte(content), "v1.0.0"
	return a
}

func opinion(of Artifact, text string) Artifact {
	a := opinions
	a.Layer, a.Subject, a.SubjectSize = []byte(text), of.Digest(), int64(len(of.Manifest()))
	return a
}

func openRepository(t *testing.T, at string, o Options) *Repository {
	t.Helper()
	r, err := OpenRepository(at, o.Lookup)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pushAll pushes artifacts, by their tags or without.
func pushAll(t *testing.T, r *Repository, tag string, all ...Artifact) {
	t.Helper()
	p, err := r.Pusher(t.Context())
	for _, a := range all {
		if err == nil {
			err = p.Push(t.Context(), a, tag)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What is pushed is there by tag and digest, and so is what refers to it, by the API of
// referrers or by a tag.
func TestRepository(t *testing.T) {
	for _, api := range []bool{true, false} {
		s := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithReferrersSupport(api)))
		defer s.Close()
		r := openRepository(t, s.Listener.Addr().String()+"/acme/w", noConfig(t))
		if _, _, err := r.Get(t.Context(), "v1", things, mostBytes); !errors.Is(err, ErrNoArtifact) {
			t.Errorf("of nothing: %v", err)
		}
		one, two := thing("one"), thing("two")
		pushAll(t, r, "v1", one)
		pushAll(t, r, "again", one)
		pushAll(t, r, "", two)
		for what, want := range map[string]Artifact{"v1": one, "again": one, one.Digest(): one, two.Digest(): two} {
			got, digest, err := r.Get(t.Context(), what, things, mostBytes)
			if err != nil || digest != want.Digest() || cmp.Diff(want, got) != "" {
				t.Errorf("%s: %s, %v", what, digest, err)
			}
		}
		for _, what := range []string{"v2", digestOf(nil)} {
			if _, _, err := r.Get(t.Context(), what, things, mostBytes); !errors.Is(err, ErrNoArtifact) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, bad := range []string{"", "a b", "../v1", "sha256:ab", "v1?x", strings.Repeat("a", 129), "-v"} {
			if _, _, err := r.Get(t.Context(), bad, things, mostBytes); err == nil || !strings.Contains(err.Error(), "is not a tag or digest") {
				t.Errorf("%q: %v", bad, err)
			}
		}
		tags, err := r.Tags(t.Context())
		if err != nil || !slices.Equal(tags, []string{"again", "v1"}) {
			t.Errorf("%v, %v", tags, err)
		}
		if list, err := r.Referrers(t.Context(), one.Digest(), opinions, mostBytes); err != nil || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
		good, bad := opinion(one, "good"), opinion(one, "bad")
		other := thing("about one")
		other.Subject, other.SubjectSize = one.Digest(), int64(len(one.Manifest()))
		pushAll(t, r, "", good, bad, other, opinion(two, "x"))
		list, err := r.Referrers(t.Context(), one.Digest(), opinions, mostBytes)
		texts := map[string]bool{}
		for _, a := range list {
			texts[string(a.Layer)] = true
		}
		if err != nil || cmp.Diff(map[string]bool{"good": true, "bad": true}, texts) != "" {
			t.Errorf("referrers by the API %v: %v, %v", api, texts, err)
		}
	}
}

// The same content has the same digest, and a reader of the specification finds what is
// there.
func TestArtifactManifest(t *testing.T) {
	const want = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.example.thing.v1",` +
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},` +
		`"layers":[{"mediaType":"application/vnd.example.thing.files.v1+json","digest":"sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed","size":3}],` +
		`"annotations":{"org.opencontainers.image.version":"v1.0.0"}}`
	if got := string(thing("one").Manifest()); got != want {
		t.Errorf("%s", got)
	}
	if thing("one").Digest() == thing("two").Digest() {
		t.Error("another content has the same digest")
	}
}

// B47, B60: what comes isn't what was asked for, or has no end.
func TestRepositoryLies(t *testing.T) {
	good, evil := thing("good"), thing("evil")
	change := func(do func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(good.Manifest(), &m); err != nil {
			t.Fatal(err)
		}
		do(m)
		return marshal(t, m)
	}
	layer := func(m map[string]any) map[string]any { return m["layers"].([]any)[0].(map[string]any) }
	index := marshal(t, map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "artifactType": things.Type, "manifests": []any{}})
	sends := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", good.Digest())
			_, _ = w.Write(data)
		}
	}
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for line := bytes.Repeat([]byte(" "), 1<<16); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}
	blob := "/blobs/" + digestOf(good.Layer)
	for _, c := range []struct {
		name, what, path string // path: of the requests that are answered
		answer           http.HandlerFunc
		want             string
		lookalike        bool // [ErrOtherType]
	}{
		{name: "another manifest for a digest", what: good.Digest(), path: "/manifests/", answer: sends(evil.Manifest()), want: "does not match"},
		{name: "an index", what: "v1", path: "/manifests/", answer: sends(index), want: "an index of manifests", lookalike: true},
		{name: "an index with layers", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["manifests"] = []any{} })), want: "an index of manifests", lookalike: true},
		{name: "another type", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["artifactType"] = "application/x" })), want: `"application/x"`, lookalike: true},
		{name: "an image", what: "v1", path: "/manifests/", answer: sends(imageOf(t, gzipped, nil).manifest), want: "image.config", lookalike: true},
		{name: "no JSON", what: "v1", path: "/manifests/", answer: sends([]byte("<html>")), want: "is damaged"},
		{name: "another media type", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["mediaType"] = "application/vnd.oci.image.index.v1+json" })), want: "is not one of"},
		{name: "two layers", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["layers"] = []any{layer(m), layer(m)} })), want: "is not one of"},
		{name: "no layer", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["layers"] = []any{} })), want: "is not one of"},
		{name: "another layer", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { layer(m)["mediaType"] = "application/vnd.oci.image.layer.v1.tar" })), want: "is not one of"},
		{name: "a configuration", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { m["config"].(map[string]any)["mediaType"] = "application/x" })), want: "is not one of"},
		{name: "a digest that is a path", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { layer(m)["digest"] = "sha256:../../x" })), want: "is not a SHA-256 digest"},
		{name: "a huge layer", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { layer(m)["size"] = mostBytes + 1 })), want: "at most 1048576 are allowed"},
		{name: "a negative size", what: "v1", path: "/manifests/", answer: sends(change(func(m map[string]any) { layer(m)["size"] = -1 })), want: "-1 bytes"},
		{name: "a huge manifest", what: "v1", path: "/manifests/", answer: sends(append(good.Manifest(), bytes.Repeat([]byte(" "), maxArtifactManifest)...)), want: "at most 65536 are allowed"},
		{name: "a manifest without end", what: "v1", path: "/manifests/", answer: endless, want: "sends more than"},
		{name: "a manifest that stalls", what: "v1", path: "/manifests/", answer: stall, want: "took longer than"},
		{name: "another layer for a digest", what: good.Digest(), path: blob, answer: sends([]byte("evil")), want: "verifying sha256"},
		{name: "a size that lies", what: good.Digest(), path: blob, answer: sends([]byte("good and more")), want: "its content is"},
		{name: "less than its size", what: good.Digest(), path: blob, answer: sends([]byte("go")), want: "verifying sha256"},
		{name: "a layer without end", what: good.Digest(), path: blob, answer: endless, want: "its content is longer than"},
		{name: "a layer that stalls", what: good.Digest(), path: blob, answer: stall, want: "took longer than"},
		{name: "a registry that stalls", what: "v1", path: "/v2/", answer: stall, want: "took longer than"},
		{name: "a redirect without TLS", what: "v1", path: "/manifests/", answer: http.RedirectHandler("http://registry.example/v2/x", http.StatusFound).ServeHTTP, want: "without TLS"},
		{name: "denied", what: "v1", path: "/manifests/", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, want: "or run `docker login"},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := new(atomic.Bool)
			host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
				if on.Load() && strings.Contains(r.URL.Path, c.path) {
					c.answer(w, r)
					return true
				}
				return false
			})
			r := openRepository(t, host+"/acme/w", noConfig(t))
			pushAll(t, r, "v1", good)
			on.Store(true)
			if strings.Contains(c.want, "took longer") {
				defer func(d time.Duration) { manifestTimeout = d }(manifestTimeout)
				manifestTimeout = 300 * time.Millisecond
			}
			r = openRepository(t, host+"/acme/w", noConfig(t)) // it asks anew
			a, _, err := r.Get(t.Context(), c.what, things, mostBytes)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrOtherType) != c.lookalike {
				t.Errorf("%s, %v; want %s", a.Layer, err, c.want)
			}
		})
	}
}

// Content may come from another host, which gets no credentials.
func TestRedirectedContent(t *testing.T) {
	a := thing("one")
	visits, credentials := new(atomic.Int64), new(atomic.Int64)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if visits.Add(1); r.Header.Get("Authorization") != "" {
			credentials.Add(1)
		}
		_, _ = w.Write(a.Layer)
	}))
	defer store.Close()
	on := new(atomic.Bool)
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, ok := r.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if on.Load() && strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, strings.Replace(store.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	r := openRepository(t, host+"/w", withLogin(t, host, ""))
	pushAll(t, r, "v1", a)
	on.Store(true)
	if got, _, err := r.Get(t.Context(), "v1", things, mostBytes); err != nil || string(got.Layer) != "one" || visits.Load() == 0 || credentials.Load() > 0 {
		t.Errorf("%s, %v: %d visits, %d with credentials", got.Layer, err, visits.Load(), credentials.Load())
	}
}

// B60: lists have an end, and only what can be a tag is one.
func TestLists(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no end": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `</v2/w/tags/list?last=x>; rel="next"`)
			fmt.Fprint(w, `{"tags":["a"]}`)
		}, "or no end"},
		"empty pages": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `</v2/w/tags/list?last=x>; rel="next"`)
			fmt.Fprint(w, `{"tags":[]}`)
		}, "or no end"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `<http://localhost:1/v2/w/tags/list?last=x>; rel="next"`)
			fmt.Fprint(w, `{"tags":["a"]}`)
		}, "does not match registry host"},
		"huge": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"tags":[%q]}`, strings.Repeat("a", maxBody))
		}, "sends more than"},
		"odd names": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"tags":["v1","\u001b[2J","../x","a b","",".x"]}`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/tags/") {
					c.answer(w, r)
					return true
				}
				return false
			})
			tags, err := openRepository(t, host+"/w", noConfig(t)).Tags(t.Context())
			if c.want == "" && (err != nil || !slices.Equal(tags, []string{"v1"})) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%.100q, %v; want %s", tags, err, c.want)
			}
		})
	}
}

// B60: what refers to a manifest is bounded, and anybody who may push may have made it.
func TestHostileReferrers(t *testing.T) {
	one := thing("one")
	list := func(n int, of func(i int) map[string]any) []byte {
		all := make([]any, n)
		for i := range all {
			all[i] = of(i)
		}
		return marshal(t, map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": all})
	}
	entry := func(kind, digest string) map[string]any {
		return map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 1, "artifactType": kind}
	}
	for name, c := range map[string]struct {
		index []byte
		want  string
		found int
	}{
		"many":               {list(maxReferrers+1, func(i int) map[string]any { return entry(opinions.Type, digestOf([]byte{byte(i)})) }), "more than 32 referrers", 0},
		"many of other type": {list(1000, func(i int) map[string]any { return entry("application/x", digestOf([]byte{byte(i)})) }), "", 0},
		"of another":         {list(1, func(int) map[string]any { return entry(opinions.Type, opinion(thing("two"), "x").Digest()) }), "", 0},
		"the thing itself":   {list(1, func(int) map[string]any { return entry(opinions.Type, one.Digest()) }), "", 0},
		"not there":          {list(1, func(int) map[string]any { return entry(opinions.Type, digestOf(nil)) }), "doesn't have it", 0},
		"damaged":            {[]byte("{"), "is damaged", 0},
		"a bad digest":       {list(1, func(int) map[string]any { return entry(opinions.Type, "sha256:../../x") }), "is damaged", 0},
		"its own":            {list(2, func(int) map[string]any { return entry(emptyType, opinion(one, "good").Digest()) }), "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/referrers/") && r.Method == http.MethodGet {
					w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
					_, _ = w.Write(c.index)
					return true
				}
				return false
			})
			r := openRepository(t, host+"/w", noConfig(t))
			pushAll(t, r, "", one, opinion(one, "good"), opinion(thing("two"), "x"))
			got, err := r.Referrers(t.Context(), one.Digest(), opinions, mostBytes)
			if len(got) != c.found || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// A repository that isn't there yet is told from one that nobody may read, by who may push.
func TestPusher(t *testing.T) {
	var scopes []string
	host := ""
	host = aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			scopes = append(scopes, r.URL.Query().Get("scope"))
			fmt.Fprintf(w, `{"token":%q}`, r.URL.Query().Get("scope"))
			return true
		case r.Header.Get("Authorization") == "Bearer repository:acme/w:push,pull":
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	r := openRepository(t, host+"/acme/w", noConfig(t))
	if _, _, err := r.Get(t.Context(), "v1", things, mostBytes); err == nil || errors.Is(err, ErrNoArtifact) {
		t.Errorf("who may only read: %v", err)
	}
	p, err := r.Pusher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Get(t.Context(), "v1", things, mostBytes); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("who may push: %v", err)
	}
	if err := p.Push(t.Context(), thing("one"), "v1"); err != nil {
		t.Errorf("%v, %q", err, scopes)
	}
	if err := p.Push(t.Context(), thing("one"), "a b"); err == nil {
		t.Error("pushed as no tag")
	}
}

func FuzzArtifact(f *testing.F) {
	f.Add(thing("one").Manifest())
	f.Add([]byte(`{"schemaVersion":2,"manifests":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, layer, err := parseArtifact(data, things, mostBytes)
		if err == nil && (a.Type != things.Type || layer.Size > mostBytes || checkDigest(layer.Digest) != nil) {
			t.Errorf("%+v, %+v", a, layer)
		}
	})
}
