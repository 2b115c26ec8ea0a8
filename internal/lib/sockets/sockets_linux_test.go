package sockets

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What this process listens on is found, with its user, its ID and its name.
func TestOwn(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Log(err) // no IPv6
			continue
		}
		defer l.Close()
		all, err := All()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(s Socket) bool { return s.Listens && s.At.String() == l.Addr().String() })
		if i < 0 || all[i].UID != uint32(os.Getuid()) {
			t.Fatalf("%s isn't among %v", l.Addr(), all)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		got := Owners(t.Context(), map[uint64]bool{all[i].Inode: true})[all[i].Inode]
		if got.PID != os.Getpid() || !strings.HasPrefix(filepath.Base(exe), got.Program) || got.Program == "" {
			t.Errorf("%s belongs to %+v, want %d %s", l.Addr(), got, os.Getpid(), exe)
		}
	}
}
