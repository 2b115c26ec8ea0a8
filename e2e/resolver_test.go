//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// anEtc gives this machine, as the test sees it, an /etc that can be changed.
func anEtc(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/upper", 0o755), os.Mkdir(dir+"/work", 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+dir+"/upper,workdir="+dir+"/work"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/etc", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestResolversAreReplaced(t *testing.T) {
	scenario.OnlyNamespace(t, "Docker keeps the resolv.conf of its containers itself")
	scenario.TheLab(t)
	anEtc(t)
	const conf = "/etc/resolv.conf"
	replace := func(name, server string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(name+".new", []byte("nameserver "+server+"\n"), 0o644), os.Rename(name+".new", name)); err != nil {
			t.Fatal(err)
		}
	}
	replace(conf, testnet.DNS)
	s := scenario.New(t, "restricted", "a machine's resolv.conf that is replaced is seen by the guard that runs: it asks the new resolver, and no more the one before")
	edit(s, "      dns: [198.51.100.53]\n", "")
	edit(s, "- ssh.example.org:22\n", "- '*.fresh.example.org'\n")
	s.Up()
	before := lives(s)
	n := 0
	asks := func(server string) {
		t.Helper()
		s.Eventually("the guard asks "+server, func() bool {
			s.Internet.Reset()
			n++ // one that no cache has
			s.Probe("worker", fmt.Sprintf("dns 127.0.0.1 x%d.fresh.example.org A -> NXDOMAIN", n))
			all := s.Internet.Queries()
			for _, q := range all {
				if q.Server != server {
					return false
				}
			}
			return len(all) > 0
		})
	}
	asks(testnet.DNS)
	replace(conf, testnet.DNS2)
	asks(testnet.DNS2)
	// As with systemd-resolved: a link, and what it leads to is replaced.
	stub := filepath.Join(t.TempDir(), "stub-resolv.conf")
	replace(stub, testnet.DNS)
	if err := errors.Join(os.Symlink(stub, conf+".new"), os.Rename(conf+".new", conf)); err != nil {
		t.Fatal(err)
	}
	asks(testnet.DNS)
	replace(stub, testnet.DNS2)
	asks(testnet.DNS2)
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	goOn(s, before, "worker", "room", "guard")
}
