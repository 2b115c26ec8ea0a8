package testnet

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
)

// Hosts that serve what git, npm and pip fetch: the package "greeting" 1.0.0,
// whose content is [Greeting]. All are made by this package.
const (
	GitHost   = "git.example.org"     // /greeting.git, over git's "dumb" HTTP
	NPMHost   = "npm.example.org"     // a registry with its tarballs
	NPMScoped = "@acme/greeting"      // there, too
	PyPIHost  = "pypi.example.org"    // /simple/, PEP 503
	FilesHost = "pyfiles.example.org" // the wheel that the index names
	GoHost    = "go.example.org"      // a module proxy with [GoModule] v1.0.0
	GoModule  = "example.org/greeting"
	Greeting  = "hello from the test internet"

	packagesAddr = "198.51.100.40"
)

// site is what a host serves by path, instead of an [Echo].
type site map[string]file

type file struct {
	kind string // Content-Type
	body []byte
}

func (in *Internet) startPackages() error {
	in.Site(GitHost, gitSite())
	in.Site(GoHost, goSite())
	in.Packages(NPMHost, PyPIHost, FilesHost)
	return nil
}

// Packages serves the package under these names: an npm registry, a Python index,
// and the host of the index's files.
func (in *Internet) Packages(npm, index, files string) {
	for host, s := range map[string]site{npm: npmSite(npm), index: indexSite(files), files: wheelSite()} {
		in.Site(host, s)
	}
}

// Site serves a host of its own on 80 and 443, instead of an [Echo] or what served it before,
// which restore puts back with what DNS said of the host.
func (in *Internet) Site(host string, h http.Handler) (restore func()) {
	in.mu.Lock()
	if in.sites == nil {
		in.sites = map[string]http.Handler{}
	}
	before := in.sites[host]
	in.sites[host] = h
	in.mu.Unlock()
	answers := in.zone.set(host, []Record{A(packagesAddr)}, true)
	return func() {
		in.mu.Lock()
		in.sites[host] = before
		in.mu.Unlock()
		in.zone.set(host, answers, answers != nil)
	}
}

// Served is what serves a host; nil: an [Echo].
func (in *Internet) Served(host string) http.Handler {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sites[host]
}

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := s[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	_, _ = w.Write(f.body)
}

// npmSite has the package, and the same in a scope.
func npmSite(host string) site {
	s := site{}
	for _, name := range []string{"greeting", NPMScoped} {
		maps.Copy(s, npmPackage(host, name))
	}
	return s
}

// npmPackage is a packument and its tarball (npm/registry, docs/responses).
func npmPackage(host, name string) site {
	manifest := map[string]any{"name": name, "version": "1.0.0", "main": "index.js"}
	about, _ := json.Marshal(manifest)
	var tgz bytes.Buffer
	zw := gzip.NewWriter(&tgz)
	tw := tar.NewWriter(zw)
	for name, text := range map[string]string{"package/package.json": string(about), "package/index.js": "module.exports = '" + Greeting + "'\n"} {
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		_, _ = tw.Write([]byte(text))
	}
	_ = tw.Close()
	_ = zw.Close()
	sum := sha512.Sum512(tgz.Bytes())
	tarball := "/" + name + "/-/greeting-1.0.0.tgz"
	manifest["dist"] = map[string]string{
		"tarball":   "https://" + host + tarball,
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	doc, _ := json.Marshal(map[string]any{
		"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest},
	})
	return site{"/" + name: {"application/json", doc}, tarball: {"application/octet-stream", tgz.Bytes()}}
}

// goSite is a module proxy (go.dev/ref/mod, GOPROXY protocol).
func goSite() site {
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	mod := "module " + GoModule + "\n\ngo 1.20\n"
	for name, text := range map[string]string{"go.mod": mod, "greeting.go": "package greeting\n\nconst Text = \"" + Greeting + "\"\n"} {
		w, _ := zw.Create(GoModule + "@v1.0.0/" + name)
		_, _ = w.Write([]byte(text))
	}
	_ = zw.Close()
	at := "/" + GoModule + "/@v/"
	return site{
		at + "list": {"text/plain", []byte("v1.0.0\n")}, at + "v1.0.0.info": {"application/json", []byte(`{"Version": "v1.0.0"}`)},
		at + "v1.0.0.mod": {"text/plain", []byte(mod)}, at + "v1.0.0.zip": {"application/zip", b.Bytes()},
	}
}

// Wheel is the name of the package's file for Python.
const Wheel = "greeting-1.0.0-py3-none-any.whl"

func indexSite(files string) site {
	return site{"/simple/greeting/": {"text/html", []byte(`<!DOCTYPE html><a href="https://` + files + "/" + Wheel + `">` + Wheel + "</a>\n")}}
}

// wheelSite is the smallest wheel that pip installs (PEP 427).
func wheelSite() site {
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	const info = "greeting-1.0.0.dist-info/"
	for _, f := range [][2]string{
		{"greeting.py", "text = '" + Greeting + "'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: testnet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "greeting.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, _ := zw.Create(f[0])
		_, _ = w.Write([]byte(f[1]))
	}
	_ = zw.Close()
	return site{"/" + Wheel: {"application/octet-stream", b.Bytes()}}
}
