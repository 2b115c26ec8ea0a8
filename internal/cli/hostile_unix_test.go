//go:build unix

package cli

import (
	"syscall"
	"testing"
)

func TestOwnerMay(t *testing.T) {
	for before, want := range map[int]int{0o777: 0o077, 0o022: 0o022, 0o377: 0o077, 0: 0} {
		was := syscall.Umask(before)
		ownerMay()
		if got := syscall.Umask(was); got != want {
			t.Errorf("%#o becomes %#o, want %#o", before, got, want)
		}
	}
}

func TestRelativeHome(t *testing.T) {
	for home, want := range map[string]string{"/home/u": "/home/u", ".": "", "here": "", "": ""} {
		if got := homeDir(func(name string) (string, bool) { return home, name == "HOME" }); got != want {
			t.Errorf("HOME=%s: %q", home, got)
		}
	}
}
