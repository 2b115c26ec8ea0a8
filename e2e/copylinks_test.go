//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// A worker makes links in a directory that it may write. `cp` on this machine, with paths
// through them, neither writes nor reads what they lead to.
func TestB43_CopyThroughLinks(t *testing.T) {
	s := scenario.New(t, "restricted", "links that a worker makes in its rw mount lead cp nowhere on the host")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./out:/workspace/out:rw", 1))
	s.Write("out/real/a.txt", "a")
	s.Write("keys/id", "PRIVATE")
	if err := os.Symlink("keys", filepath.Join(s.Dir, "mine")); err != nil {
		t.Fatal(err)
	}
	s.Up()
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "cd /workspace/out && ln -s ../keys climbs && ln -s "+s.Dir+"/keys absolute && ln -s /proc/self/cwd/keys proc && ln -s real inner && mkdir -p /scratch/bin && echo planted > /scratch/bin/id")
	for _, link := range []string{"climbs", "absolute", "proc"} {
		refusal := "a symbolic link leads out of " + s.Dir + "/out, where workers may write"
		for _, args := range [][]string{
			{"worker:/scratch/bin", "./out/" + link}, {"worker:/scratch/bin/id", "./out/" + link}, {"worker:/scratch/bin/id", "./out/" + link + "/id"},
			{"./out/" + link + "/id", "worker:/scratch/stolen"},
		} {
			if d := s.Run("cp", args[0], args[1]); d.Code != 4 || !strings.Contains(d.Err, refusal) {
				t.Errorf("cp %s: exit code %d, %s", strings.Join(args, " "), d.Code, d.Err)
			}
		}
	}
	s.Expect(0, "cp", "./out", "worker:/scratch/copied")
	s.Expect(0, "cp", "worker:/workspace/out", "./back")
	if d := s.Run("exec", "worker", "--", "grep", "-r", "PRIVATE", "/scratch", "/workspace/out"); strings.Contains(d.Out, "PRIVATE") {
		t.Errorf("the worker has it: %s", d.Out)
	}
	if _, err := os.Lstat(filepath.Join(s.Dir, "back/climbs")); err == nil {
		t.Error("a link that leads out was copied here")
	}
	if l := tree(t, filepath.Join(s.Dir, "keys")); len(l) != 2 || s.Read("keys/id") != "PRIVATE" {
		t.Errorf("the worker wrote: %v", l)
	}
	// Links in the mount, and the user's own, are followed.
	s.Expect(0, "cp", "worker:/scratch/bin/id", "./out/inner")
	s.Expect(0, "cp", "worker:/scratch/bin", "./mine")
	if s.Read("out/real/id") != "planted\n" || s.Read("keys/bin/id") != "planted\n" {
		t.Error("a link that may be followed is not")
	}
}
