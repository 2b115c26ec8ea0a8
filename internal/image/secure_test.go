//go:build linux

package image

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// withLogin has credentials of one registry, and no other configuration of the user.
func withLogin(t *testing.T, host, more string) Options {
	t.Helper()
	o := noConfig(t)
	dir, _ := o.Lookup("DOCKER_CONFIG")
	write(t, filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q%s}}}`, host, base64.StdEncoding.EncodeToString([]byte("me:secret")), more))
	return o
}

// tokenServer gives the token "t" to everybody, and counts who comes with credentials.
func tokenServer(t *testing.T, redirect string) (s *httptest.Server, visits, credentials *atomic.Int64) {
	t.Helper()
	visits, credentials = new(atomic.Int64), new(atomic.Int64)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits.Add(1)
		if r.Header.Get("Authorization") != "" || r.Method == http.MethodPost {
			credentials.Add(1)
		}
		if redirect != "" {
			http.Redirect(w, r, redirect, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, `{"token":"t"}`)
	}))
	t.Cleanup(s.Close)
	return s, visits, credentials
}

// B43: the user's credentials for a registry go to no other host, whatever it says.
func TestCredentialsElsewhere(t *testing.T) {
	img := imageOf(t, gzipped, nil, layerOf(t, file("f", "1")))
	const identity = `,"identitytoken":"refresh"`
	for _, c := range []struct {
		name, more string // more of the login
		login      bool
		redirect   bool // of a token server of its own, to the other one
		ok         bool
	}{
		{name: "a password", login: true},
		{name: "an identity token", login: true, more: identity},
		{name: "nobody's", ok: true},
		{name: "a password, redirected", login: true, redirect: true, ok: true}, // without it
		{name: "an identity token, redirected", login: true, redirect: true, more: identity},
	} {
		t.Run(c.name, func(t *testing.T) {
			other, visits, credentials := tokenServer(t, "")
			elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) // another host to the library
			realm, host := elsewhere, ""
			host = aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/token":
					http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
					return true
				case r.Header.Get("Authorization") == "Bearer t":
					return false
				}
				if c.redirect {
					realm = "http://" + host + "/token"
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="s"`, realm))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			})
			push(t, host, "w", img, "1")
			o := noConfig(t)
			if c.login {
				o = withLogin(t, host, c.more)
			}
			_, err := LookUp(t.Context(), ref(t, host+"/w:1"), o.Lookup)
			if credentials.Load() > 0 {
				t.Errorf("sent %d times", credentials.Load())
			}
			if c.ok != (err == nil) || c.ok != (visits.Load() > 0) || err != nil && !strings.Contains(err.Error(), "sent to its own host alone") {
				t.Errorf("%v, %d visits", err, visits.Load())
			}
		})
	}
}

// A token server of the registry's own gets them.
func TestCredentialsOfOwn(t *testing.T) {
	img := imageOf(t, gzipped, nil, layerOf(t, file("f", "1")))
	host, sent := "", new(atomic.Int64)
	host = aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); r.URL.Path == "/token" && user == "me" && password == "secret" {
			sent.Add(1)
			fmt.Fprint(w, `{"token":"t"}`)
			return true
		}
		if r.Header.Get("Authorization") == "Bearer t" {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	push(t, host, "w", img, "1")
	if _, err := LookUp(t.Context(), ref(t, host+"/w:1"), withLogin(t, host, "").Lookup); err != nil || sent.Load() == 0 {
		t.Errorf("%v, sent %d times", err, sent.Load())
	}
}

func TestOwnHosts(t *testing.T) {
	for _, c := range []struct {
		registry, realm string
		own             bool
	}{
		{"docker.io", "https://auth.docker.io/token", true},
		{"docker.io", "https://index.docker.io/v2/", true},
		{"registry.gitlab.com", "https://gitlab.com/jwt/auth", true},
		{"git.example.org:5050", "https://git.example.org/jwt/auth", true},
		{"Registry.example.org", "https://registry.EXAMPLE.org/token", true},
		{"ghcr.io", "https://ghcr.io/token", true},
		{"ghcr.io", "https://evil.io/token", false},
		{"registry.example.org", "https://example.org.evil.test/token", false},
		{"registry.example.org", "https://evilexample.org/token", false},
		{"acme.co.uk", "https://evil.co.uk/token", false},
		{"acme.github.io", "https://evil.github.io/token", false},
		{"localhost:5000", "http://localhost:5000/token", true},
		{"localhost:5000", "http://localhost:5001/token", false},
		{"127.0.0.1:5000", "http://127.0.0.1:5001/token", false},
		{"198.51.100.1", "https://198.51.100.1:8443/token", true},
		{"198.51.100.1", "https://198.18.100.1/token", false},
		{"registry", "https://tokens/token", false},
		{"registry", "https://registry/token", true},
		{"[2001:db8::1]:5000", "https://[2001:db8::1]/token", true},
		{"[2001:db8::1]:5000", "https://[2001:db8::2]/token", false},
	} {
		u, err := url.Parse(c.realm)
		if err != nil {
			t.Fatal(err)
		}
		if got := (secure{registry: c.registry}).own(u); got != c.own {
			t.Errorf("%s of %s: %v", c.realm, c.registry, got)
		}
	}
}

// B60: redirects end.
func TestRedirectsEnd(t *testing.T) {
	requests := new(atomic.Int64)
	host := aRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		http.Redirect(w, r, fmt.Sprintf("/v2/w/manifests/%d", requests.Add(1)), http.StatusFound)
		return true
	})
	if _, err := LookUp(t.Context(), ref(t, host+"/w:1"), noConfig(t).Lookup); err == nil || !strings.Contains(err.Error(), "redirects more than") || requests.Load() > 20 {
		t.Errorf("%v, %d requests", err, requests.Load())
	}
}
