package reference

import (
	"strings"
	"testing"
)

var hex64 = strings.Repeat("ab", 32)

func TestParse(t *testing.T) {
	sum := "sha256:" + hex64
	for in, want := range map[string]Ref{
		"host":                         {Kind: Host},
		"debian":                       {Kind: Registry, Name: "docker.io/library/debian:latest"},
		"host:1":                       {Kind: Registry, Name: "docker.io/library/host:1"},
		"acme/worker:1.4":              {Kind: Registry, Name: "docker.io/acme/worker:1.4"},
		"localhost:5000/w":             {Kind: Registry, Name: "localhost:5000/w:latest"},
		"ghcr.io/acme/w@" + sum:        {Kind: Registry, Name: "ghcr.io/acme/w", Digest: sum},
		"ghcr.io/acme/w:1@" + sum:      {Kind: Registry, Name: "ghcr.io/acme/w:1", Digest: sum},
		"docker.io/library/oci:1":      {Kind: Registry, Name: "docker.io/library/oci:1"},
		"oci:images/w":                 {Kind: Layout, Path: "images/w"},
		"oci:../images":                {Kind: Layout, Path: "../images"},
		"oci:./a b@c":                  {Kind: Layout, Path: "./a b@c"},
		"oci:/srv/i:1.4":               {Kind: Layout, Path: "/srv/i", Name: "1.4"},
		"oci:i:ghcr.io/acme/w:1":       {Kind: Layout, Path: "i", Name: "ghcr.io/acme/w:1"},
		"oci:i@" + sum:                 {Kind: Layout, Path: "i", Digest: sum},
		"oci:i#" + sum:                 {Kind: Layout, Path: "i", Content: sum},
		"oci:i:1@a#" + sum:             {Kind: Layout, Path: "i", Name: "1@a", Content: sum},
		"oci:i@" + sum + "#" + sum:     {Kind: Layout, Path: "i", Digest: sum, Content: sum},
		"docker-archive:w.tar#" + sum:  {Kind: Archive, Path: "w.tar", Content: sum},
		"docker-archive:w:w:1#" + sum:  {Kind: Archive, Path: "w", Name: "docker.io/library/w:1", Content: sum},
		"docker-archive:w.tar":         {Kind: Archive, Path: "w.tar"},
		"docker-archive:w.tar:acme/w":  {Kind: Archive, Path: "w.tar", Name: "docker.io/acme/w:latest"},
		"docker-archive:./w.tar:w:1.4": {Kind: Archive, Path: "./w.tar", Name: "docker.io/library/w:1.4"},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
		again, err := Parse(got.String())
		if err != nil || again != got {
			t.Errorf("%s: %q reads as %+v, %v", in, got, again, err)
		}
	}
	for _, bad := range []string{
		"", "Not An Image", "Host", hex64, "a:b:c", "oci:", "oci::1", "oci:i:", "oci:i:a b", "oci:~/i", "oci:a:b@sha256:" + hex64, "oci:i@sha256:12",
		"oci:i\n", "oci:i\x00", `oci:i\j`, "docker-archive:", "docker-archive:f:", "docker-archive:f:A", "docker-archive:f:w@sha256:" + hex64,
		"docker-archive:~/f", "oci:#" + "sha256:" + hex64, "w:1#sha256:" + hex64, strings.Repeat("a", 5000),
	} {
		r, err := Parse(bad)
		e, ok := err.(*Error)
		if !ok || e.Hint == "" || e.Problem == "" {
			t.Errorf("%q: %+v, %v", bad, r, err)
		}
	}
}

func TestIn(t *testing.T) {
	for in, want := range map[string]string{
		"oci:images/w:1": "oci:/p/images/w:1", "oci:../i": "oci:/i", "oci:/srv/i": "oci:/srv/i",
		"docker-archive:./w.tar": "docker-archive:/p/w.tar", "oci:i:1#sha256:" + hex64: "oci:/p/i:1#sha256:" + hex64, "debian:12": "docker.io/library/debian:12", "host": "host",
	} {
		r, err := Parse(in)
		if err != nil || r.In("/p").String() != want {
			t.Errorf("%s: %q, %v; want %q", in, r.In("/p"), err, want)
		}
	}
	if r, _ := Parse("localhost:5000/a/b"); r.RegistryHost() != "localhost:5000" {
		t.Errorf("host %q", r.RegistryHost())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"host", "debian:12", "oci:i:1", "oci:i@sha256:" + hex64, "docker-archive:f:w:1", "oci:i:1#sha256:" + hex64} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q: %+v reads back as %+v, %v", s, r, again, err)
		}
	})
}
