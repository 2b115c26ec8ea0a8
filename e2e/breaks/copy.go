package breaks

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Copy copies what git knows of the repository, changes included. It runs in its root.
func Copy(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		return err
	}
	tar := exec.Command("tar", "-c", "--null", "--ignore-failed-read", "-T", "-")
	tar.Stdin = bytes.NewReader(out)
	untar := exec.Command("tar", "-x", "-C", to)
	if untar.Stdin, err = tar.StdoutPipe(); err != nil {
		return err
	}
	if err := untar.Start(); err != nil {
		return err
	}
	if err := tar.Run(); err != nil {
		return err
	}
	return untar.Wait()
}

// Build builds workshop of a copy, with workshop-init for this machine alone.
func Build(src string) error {
	build := exec.Command("make", "build", "ARCHES="+runtime.GOARCH, "CMDS=./cmd/workshop", "VERSION=broken")
	build.Dir = src
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("it doesn't build: %w\n%s", err, out)
	}
	return nil
}
