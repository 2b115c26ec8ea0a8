//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestListsNameTests: what stands in the lists of tests that can't pass somewhere exists,
// and has a reason.
func TestListsNameTests(t *testing.T) {
	var all strings.Builder
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			b, err := os.ReadFile(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	line := regexp.MustCompile(`^(Test\w+) \S+ .`)
	for _, name := range []string{"podman.txt", "gvisor.txt", "vm.txt"} {
		list, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(list)) {
			m := line.FindStringSubmatch(l)
			switch {
			case l == "\n" || strings.HasPrefix(l, "#"):
			case m == nil:
				t.Errorf("%s: not a test with a reason: %s", name, l)
			case !strings.Contains(all.String(), "func "+m[1]+"(t *testing.T)"):
				t.Errorf("%s: no test %s", name, m[1])
			}
		}
	}
}

func TestPodmanEndsDuringUp(t *testing.T) {
	scenario.OnlyPodman(t, "its service is a process that ends while containers go on")
	s := scenario.New(t, "restricted", "a service that ends in the middle of up is one clear error; the next up and down go on from there")
	for _, at := range []string{"room", "guard", "worker"} {
		cmd := s.Command(t.Context(), "up")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the "+at+" is there", func() bool { _, ok := s.Containers()[at]; return ok })
		s.EndPodman(syscall.SIGKILL)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 5 && code != 0 || code == 5 && strings.Count(errs.String(), "workshop: error: ") != 1 {
			t.Errorf("at the %s: exit code %d\n%s", at, code, errs.String())
		}
		t.Logf("at the %s:\n%s", at, errs.String())
		d := s.Run("ps")
		s.StartPodman() // other tests need it, too
		if d.Code != 4 {
			t.Errorf("at the %s: ps: exit code %d, want 4", at, d.Code)
		}
		says(s, d, "is up on podman at unix://", "podman.sock", "doesn't answer")
		s.Up()
		s.Sees("worker", append([]string{"http https://allowed.example.org/ ca=/ca.pem -> 200"}, closedAtOnce...)...)
		s.Expect(0, "down")
		if l := left(s); l != nil {
			t.Errorf("left: %v", l)
		}
	}
}

// What a podman that ended left in its storage doesn't stop `up`, and what a build tool has
// there is nobody's to remove.
func TestPodmanKnowsTheStorageAlone(t *testing.T) {
	scenario.OnlyPodman(t, "its storage and its database are two")
	s := scenario.New(t, "restricted", "a name that podman's storage has alone is taken from what is left of a container, not from a build")
	s.Up()
	s.Expect(0, "down")
	name := s.Project + "-worker-1"
	for _, builds := range []bool{true, false} {
		there, remove := s.StoreAlone(name, builds)
		d := s.Run("up")
		switch {
		case builds && (d.Code == 0 || !there()):
			t.Errorf("of a build: exit code %d, it is there: %v\n%s", d.Code, there(), d.Err)
		case builds:
			says(s, d, "already in use")
			remove()
		case d.Code != 0 || there():
			t.Errorf("left by podman: exit code %d, it is there: %v\n%s", d.Code, there(), d.Err)
		}
		s.Expect(0, "down")
	}
}

// podman hands an image's annotations to its runtime, and crun takes a seccomp filter from one.
func TestB02_AnnotationsOfAnImage(t *testing.T) {
	scenario.OnlyPodman(t, "Docker doesn't read an image's annotations")
	s := scenario.New(t, "restricted", "an image whose annotations a runtime would obey is refused before its container is started; without them it runs")
	importImage(t, s, "workshop-e2e-tool:1")
	podman := func(line string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `podman() { command podman --url "$DOCKER_HOST" "$@"; }; `+line)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	const name = "localhost/workshop-e2e-annotated:1"
	podman("echo FROM workshop-e2e-tool:1 | podman build -q --annotation run.oci.seccomp_bpf_data=BgAAAAAA/38= --annotation org.opencontainers.image.title=tool -t " + name + " -")
	file := s.Read("workshop.yaml")
	s.Write("workshop.yaml", strings.Replace(file, "image: host", "image: "+name, 1))
	d := s.Expect(4, "up")
	says(s, d, "container "+s.Project+"-worker-1 isn't what was asked of the engine: Annotations: asked none, found run.oci.seccomp_bpf_data (B2)",
		"make the image one without, `podman save --format docker-archive "+name+" | podman load`")
	if l := left(s); l != nil {
		t.Errorf("up left %v", l)
	}
	podman("podman save -q --format docker-archive " + name + " | podman load -q")
	s.Up()
	s.Sees("worker", "syscall keyctl -> EPERM|ENOSYS")
	s.Expect(0, "down")
}

// A podman that is killed while it starts a container leaves its /dev/shm mounted, and mostly
// says of its removal that it failed.
func TestPodmanLeavesMounts(t *testing.T) {
	scenario.OnlyPodman(t, "its containers have a mount on this machine")
	s := shown(t, "containers whose /dev/shm is still mounted are removed")
	s.Up()
	for _, worker := range []string{"one", "wide", "closed"} {
		s.Crash(worker)
		s.Eventually(worker+" has ended", func() bool { return s.Containers()[worker].State == "exited" })
		dirs, err := filepath.Glob(filepath.Join(s.PodmanStorage(), "*-containers", s.Containers()[worker].ID, "userdata/shm"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("its /dev/shm is %v: %v", dirs, err)
		}
		s.Eventually("podman has unmounted it", func() bool {
			b, err := os.ReadFile("/proc/self/mountinfo")
			return err == nil && !strings.Contains(string(b), " "+dirs[0]+" ")
		})
		if err := syscall.Mount("shm", dirs[0], "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dirs[0], syscall.MNT_DETACH) })
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("left: %v", l)
	}
}

// TestPodmanSplitsLines: conmon reads 8 KiB at once, and calls what it has of the last line a
// part, of which podman gives the time as well.
func TestPodmanSplitsLines(t *testing.T) {
	scenario.OnlyPodman(t, "its conmon can be held up, so that it reads many lines at once")
	s := shown(t, "events that the guard reports at once are all in a log that is followed")
	s.Up()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid("guard")))
	if err != nil {
		t.Fatal(err)
	}
	conmon, err := strconv.Atoi(strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(conmon, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(conmon, syscall.SIGCONT) }()
	const n = 100
	var probes []string
	for i := range n {
		probes = append(probes, fmt.Sprintf("dns 127.0.0.1 n%d.example.org A -> NXDOMAIN", i))
	}
	s.Sees("one", probes...)
	if err := syscall.Kill(conmon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := s.Command(t.Context(), "firewall", "log", "-f")
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGINT); _ = cmd.Wait() }()
	s.Eventually("all events are followed", func() bool {
		b, err := os.ReadFile(log)
		return err == nil && bytes.Count(b, []byte(`"deny"`)) == n
	})
}
