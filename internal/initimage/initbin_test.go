package initimage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
)

func set(t *testing.T, data []byte) *Set {
	t.Helper()
	return NewSet(fstest.MapFS{FileName("amd64"): {Data: Pack(data)}})
}

func TestBinaryAndDigest(t *testing.T) {
	s := set(t, []byte("program"))
	b, err := s.Binary("amd64")
	if err != nil || string(b) != "program" {
		t.Fatalf("Binary = %q, %v", b, err)
	}
	d, err := s.Digest("amd64")
	if err != nil || len(d) != 64 {
		t.Fatalf("Digest = %q, %v", d, err)
	}
	v, err := s.VolumeName("amd64")
	if err != nil || len(v) != len("workshop-init-")+24 || v == "workshop-init-"+d[:24] {
		t.Fatalf("VolumeName = %q, %v: it must not be one that was filled with another mode", v, err)
	}
	if other, err := set(t, []byte("other")).VolumeName("amd64"); err != nil || other == v {
		t.Errorf("another program has the volume %q too, %v", other, err)
	}
}

func TestNotBuiltSaysWhatToDo(t *testing.T) {
	var nb *NotBuiltError
	_, err := NewSet(fstest.MapFS{}).Binary("amd64")
	if !errors.As(err, &nb) || !strings.Contains(err.Error(), "make build") {
		t.Fatalf("err = %v", err)
	}
	_, err = set(t, nil).Binary("arm64")
	if !errors.As(err, &nb) || !strings.Contains(err.Error(), "only for amd64") {
		t.Fatalf("err = %v", err)
	}
}

func TestDamagedIsAnError(t *testing.T) {
	s := NewSet(fstest.MapFS{FileName("amd64"): {Data: []byte("not packed")}})
	if _, err := s.Binary("amd64"); err == nil {
		t.Fatal("no error")
	}
}

func TestImageIsDeterministicAndComplete(t *testing.T) {
	a, err := NewImage("amd64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := NewImage("amd64", []byte("program"))
	if a.ID != b.ID || !bytes.Equal(a.Tar, b.Tar) {
		t.Error("same program, different image")
	}
	if c, _ := NewImage("amd64", []byte("other")); c.ID == a.ID || c.ManifestID == a.ManifestID {
		t.Error("different program, same ID")
	}
	files := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(a.Tar))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s carries a time", h.Name)
		}
		files[h.Name], _ = io.ReadAll(r)
	}
	for _, id := range []string{a.ID, a.ManifestID} {
		if got := digest(files[blob(id)]); got != id {
			t.Errorf("blob of %s has digest %s", id, got)
		}
	}
	for _, name := range []string{"manifest.json", "index.json", "oci-layout"} {
		if len(files[name]) == 0 {
			t.Errorf("no %s", name)
		}
	}
	owners := map[string]int{}
	layer, err := layerTar([]byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 {
			owners[h.Name] = h.Uid
		}
	}
	if len(owners) != 1 || owners["run/outlet/"] != 65531 {
		t.Errorf("what isn't root's: %v", owners)
	}
}

// The names that pack wrote are those of the program; others are refused when
// it is unpacked.
func TestNamesFile(t *testing.T) {
	plain := set(t, []byte("program"))
	want, err := plain.Names("amd64")
	if err != nil {
		t.Fatal(err)
	}
	img, err := plain.Image("amd64")
	if err != nil || img.ID != want.ImageID || img.ManifestID != want.ManifestID || want.Size != 7 {
		t.Errorf("%+v, %v", want, err)
	}
	files := plain.files.(fstest.MapFS)
	for name, change := range map[string]func(*Names){"right": func(*Names) {}, "wrong": func(n *Names) { n.Digest = strings.Repeat("0", 64) }} {
		n := want
		change(&n)
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSet(fstest.MapFS{FileName("amd64"): files[FileName("amd64")], NamesFile("amd64"): {Data: data}})
		if got, err := s.Names("amd64"); err != nil || got != n {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := s.Binary("amd64"); (err != nil) != (name == "wrong") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Damaged names are made anew.
	s := NewSet(fstest.MapFS{FileName("amd64"): files[FileName("amd64")], NamesFile("amd64"): {Data: []byte("{")}})
	if got, err := s.Names("amd64"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// What unpacks to more than a program is refused.
func TestUnpackLimit(t *testing.T) {
	if _, err := NewSet(fstest.MapFS{FileName("amd64"): {Data: Pack(make([]byte, MaxSize+1))}}).Binary("amd64"); err == nil {
		t.Error("a bomb was unpacked")
	}
}
