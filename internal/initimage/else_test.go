package initimage

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// What isn't embedded is built, once, and what is embedded is never replaced.
func TestElse(t *testing.T) {
	asked := ""
	s := set(t, []byte("embedded")).Else(func(arch string) (fs.FS, error) {
		asked += arch + " "
		return fstest.MapFS{FileName(arch): {Data: PackFast([]byte("built"))}}, nil
	})
	for _, arch := range []string{"amd64", "arm64", "arm64"} {
		want := map[string]string{"amd64": "embedded", "arm64": "built"}[arch]
		n, err := s.Names(arch)
		if err != nil || n.Size != int64(len(want)) {
			t.Errorf("%s: %+v, %v", arch, n, err)
		}
		if b, err := s.Binary(arch); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", arch, b, err)
		}
	}
	if asked != "arm64 " {
		t.Errorf("built: %q", asked)
	}
}

func TestElseFails(t *testing.T) {
	s := NewSet(fstest.MapFS{}).Else(func(string) (fs.FS, error) { return nil, errors.New("no toolchain") })
	_, err := s.Names("amd64")
	if _, ok := errors.AsType[*NotBuiltError](err); !ok || !strings.Contains(err.Error(), "linux/amd64: no toolchain") {
		t.Errorf("got %v", err)
	}
}

// One set of flags builds workshop-init everywhere.
func TestBuildFlags(t *testing.T) {
	b, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"INIT_TAGS := " + BuildTags + "\n", "INIT_LDFLAGS := " + LinkFlags + "\n",
		"build -trimpath -buildvcs=false -tags $(INIT_TAGS) -ldflags '$(INIT_LDFLAGS)' -o bin/workshop-init"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the Makefile lacks %q", want)
		}
	}
}
