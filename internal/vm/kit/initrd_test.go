//go:build linux

package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/vm/config"
)

// A machine's files follow those of the kit, where the kernel looks for another archive. The
// init can be read by nobody in the guest, and the whole isn't changed any more.
func TestInitrd(t *testing.T) {
	dir, init := t.TempDir(), filepath.Join(t.TempDir(), "init")
	program := bytes.Repeat([]byte("an init"), 1001)
	if err := os.WriteFile(init, program, 0o600); err != nil {
		t.Fatal(err)
	}
	guest := &config.Guest{Shares: []string{"rw"}}
	guest.Container.Name = "a-1"
	for n := range 4 { // however long the kit's archive is
		archive := bytes.Repeat([]byte("x"), 40+n)
		if err := os.WriteFile(filepath.Join(dir, Initramfs), archive, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Initrd(dir, init, guest)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil || !bytes.HasPrefix(all, archive) {
			t.Fatalf("%q, %v", all, err)
		}
		own := all[(len(archive)+3)&^3:]
		if diff := cmp.Diff([]string{"0100111 init", "0100400 guest.json"}, listed(t, own)); diff != "" {
			t.Error(diff)
		}
		r := cpio.NewReader(bytes.NewReader(own))
		for _, want := range []string{string(program), string(must(json.Marshal(guest)))} {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); string(got) != want || err != nil {
				t.Errorf("got %.40q, %v, want %.40q", got, err, want)
			}
		}
		if _, err := f.WriteAt([]byte("y"), 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("it is written: %v", err)
		}
	}
	f, err := Initrd(dir, init, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if got := listed(t, all[44:]); !slices.Equal(got, []string{"0100111 init"}) {
		t.Errorf("without a guest: %q", got)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if f, err := Initrd(dir, bad, nil); err == nil || !strings.HasPrefix(err.Error(), "initramfs: ") {
			t.Errorf("%s: %v, %v", bad, f, err)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
