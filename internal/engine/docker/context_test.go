package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dockerContext writes a context as `docker context create` does.
func dockerContext(t *testing.T, dir, name, meta string, files map[string][]byte) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	write := func(file string, data []byte) {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "contexts", "meta", id, "meta.json"), []byte(meta))
	for file, data := range files {
		write(filepath.Join(dir, "contexts", "tls", id, "docker", file), data)
	}
}

// TestContext: the address of a docker context, and its certificates.
func TestContext(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Ostype", "linux")
	}))
	defer server.Close()
	address := "tcp://" + server.Listener.Addr().String()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	endpoint := func(skip string) string {
		return `{"Name":"far","Metadata":{},"Endpoints":{"docker":{"Host":"` + address + `","SkipTLSVerify":` + skip + `}}}`
	}
	for name, c := range map[string]struct {
		meta  string
		files map[string][]byte
		want  string // in the error; empty: it answers
	}{
		"own CA":    {endpoint("false"), map[string][]byte{"ca.pem": ca}, ""},
		"unchecked": {endpoint("true"), nil, ""},
		"other CA":  {endpoint("false"), map[string][]byte{"ca.pem": []byte("no certificate")}, "ca.pem"},
		"bad key":   {endpoint("false"), map[string][]byte{"ca.pem": ca, "cert.pem": ca, "key.pem": ca}, "key.pem"},
		"no engine": {`{"Name":"far","Metadata":{},"Endpoints":{}}`, nil, "names no engine"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dockerContext(t, dir, "far", c.meta, c.files)
			e, err := New(t.Context(), Options{Lookup: env(map[string]string{"DOCKER_CONFIG": dir, "DOCKER_CONTEXT": "far"})})
			if err == nil {
				_, err = e.cli.Ping(t.Context())
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
