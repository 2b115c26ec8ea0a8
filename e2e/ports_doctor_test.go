//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/e2e/scenario"
)

// stranger is a user of this machine who has nothing to do with workshops.
const stranger = 12345

// publishPorts gives a scenario of deskFiles other ports.
func publishPorts(s *scenario.Scenario, ports ...string) {
	s.Helper()
	s.Write("workshop.yaml", strings.Replace(deskFiles()["workshop.yaml"], `ports: ["0:8080"]`, "ports: ["+strings.Join(ports, ", ")+"]", 1))
}

// squatter is a program of this machine that is no workshop's and listens, until the test
// ends.
func squatter(t *testing.T, uid int, address string) (pid int) {
	t.Helper()
	program, err := os.ReadFile(scenario.TheLab(t).Init())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "squatter")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(path); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	cmd := exec.Command(path, "probe", "serve "+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, "listening") {
		t.Fatalf("the program doesn't listen on %s: %q", address, line)
	}
	return cmd.Process.Pid
}

// foreignCompose starts a container of a Compose project that is no workshop's.
func foreignCompose(s *scenario.Scenario, name, publish string) {
	s.Helper()
	s.Expect(0, "compile", "--load")
	_, image, _ := strings.Cut(s.Read(filepath.Join(".workshop", s.WorkshopName(), "run", "facts.env")), "WORKSHOP_INIT_IMAGE=")
	image, _, _ = strings.Cut(strings.TrimSpace(image), "\n")
	out, err := exec.Command("docker", "run", "-d", "--name", name, "--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service="+name,
		"-p", publish, image, "probe", "serve 127.0.0.1:1").CombinedOutput()
	if err != nil {
		s.Fatalf("docker run: %v\n%s", err, out)
	}
	s.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", name).Run() })
}

// portFinding is one of `doctor ports`.
type portFinding struct{ Name, Address, Text, Do string }

// portFindings are those of `doctor ports`, "NAME ADDRESS", sorted.
func portFindings(s *scenario.Scenario, args ...string) (all []portFinding, names []string) {
	s.Helper()
	d := s.Run(append([]string{"doctor", "ports", "--format", "json"}, args...)...)
	var r struct {
		Findings []portFinding
		Unseen   []string
	}
	if err := json.Unmarshal([]byte(d.Out), &r); err != nil {
		s.Fatalf("%v\n%s%s", err, d.Out, d.Err)
	}
	if want := min(1, len(r.Findings)); d.Code != want || len(r.Unseen) > 0 {
		s.Errorf("exit code %d, want %d; %v\n%s", d.Code, want, r.Unseen, d.Err)
	}
	for _, f := range r.Findings {
		names = append(names, f.Name+" "+f.Address)
	}
	slices.Sort(names)
	return r.Findings, names
}

// plantLease writes a lease into the registry, as an editor would: one of the same number
// as that of another worker.
func plantLease(s *scenario.Scenario, port uint16) {
	s.Helper()
	path := registryOf(s)
	b, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	text := strings.TrimSuffix(strings.TrimSpace(string(b)), "]") +
		fmt.Sprintf(`,{"dir":%q,"project":%q,"worker":"ghost","target":9999,"port":%d,"host":"127.0.0.1"}]`, s.Dir, s.Project, port)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// registryOf is the file with the leases of whoever runs a scenario's programs.
func registryOf(s *scenario.Scenario) string {
	for _, e := range s.Env {
		if dir, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			return filepath.Join(dir, "workshop/ports/leases.json")
		}
	}
	s.Fatal("it has no state of its own")
	return ""
}

// Every situation that `doctor ports` is for is planted on a machine on which other
// programs listen, and Compose projects run. It finds each and no other, and nothing where
// none is planted.
func TestDoctorPorts(t *testing.T) {
	all, ok := desks(t, "doctor ports finds what is planted, and nothing on a clean machine", "one", "two", "three", "gone", "idle", "low")
	if !ok {
		return
	}
	one, two, three, gone, idle, low := all[0], all[1], all[2], all[3], all[4], all[5]
	docker, rootless := scenario.DockerAPI(), scenario.TheEngine() == scenario.Rootless
	mine := 0
	if rootless {
		mine = scenario.UID
	}
	p := make([]string, 7)
	for i := range p {
		p[i] = freePort(t)
	}

	// A clean machine: others listen everywhere, and workshops are up and down.
	squatter(t, stranger, "0.0.0.0:"+freePort(t))
	squatter(t, mine, "127.0.0.1:"+freePort(t))
	if docker {
		foreignCompose(one, "inner", "127.0.0.1:"+freePort(t)+":80")
	}
	publishPorts(one, `"`+p[0]+`:8080"`, `"0:8081"`)
	one.Up()
	idle.Up()
	gone.Up()
	gone.Expect(0, "down")
	if d := one.Expect(0, "doctor", "ports"); d.Out != "" || !strings.HasSuffix(d.Err, "no problems found\n") {
		t.Fatalf("on a clean machine:\n%s%s", d.Out, d.Err)
	}
	if d := one.Run("doctor", "-v"); !strings.Contains(d.Out, "ports of workshops registered, without a conflict") {
		t.Errorf("doctor:\n%s%s", d.Out, d.Err)
	}

	// Two files reserve one number, and a program has what two others reserve.
	one.Expect(0, "down")
	publishPorts(two, `"`+p[0]+`:8080"`, `"`+p[1]+`:8081"`, `"`+p[2]+`:8082"`, `"`+p[3]+`:8083"`)
	says(two, two.Up(), "port "+p[0]+" of worker: project "+one.Project+" ("+one.Dir+") reserves it, too")
	if d := two.Up(); strings.Contains(d.Err, "reserves it, too") {
		t.Errorf("it is said again: %s", d.Err)
	}
	two.Expect(0, "down")
	pid := squatter(t, mine, "127.0.0.1:"+p[1])
	says(two, two.Expect(5, "up"), fmt.Sprintf("127.0.0.1:%s, which worker publishes, is taken by another program or container: squatter (pid %d) of ", p[1], pid))
	squatter(t, stranger, "127.0.0.1:"+p[2])
	publishPorts(two, `"`+p[0]+`:8080"`, `"`+p[1]+`:8081"`, `"`+p[2]+`:8082"`) // and no fourth: its lease is stale
	publishPorts(one, `"`+p[0]+`:8080"`, `"0:8081"`, `{published: `+p[4]+`, target: 8082, host: 0.0.0.0, expose_beyond_host: true}`)
	one.Up()
	// Another file reserves what was chosen for the first, and can't come up.
	_, chosen, _ := net.SplitHostPort(strings.TrimSpace(one.Expect(0, "port", "worker", "8081").Out))
	publishPorts(three, `"`+chosen+`:8080"`)
	says(three, three.Expect(5, "up"), "is taken by worker worker of project "+one.Project)
	// A number that was chosen twice, a port of a directory that is gone, and a guard that
	// doesn't run while its worker does.
	at := published(idle)
	number, err := strconv.ParseUint(at[strings.LastIndexByte(at, ':')+1:], 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	plantLease(one, uint16(number))
	idle.Stop("guard")
	moveAway(gone)
	want := []string{
		"chosen-and-reserved 127.0.0.1:" + chosen, "exposed 0.0.0.0:" + p[4], "leased-twice " + at, "no-endpoint " + at,
		"reserved-twice 127.0.0.1:" + p[0], "stale-lease 127.0.0.1:" + p[3], "taken 127.0.0.1:" + p[1], "taken-by-other-user 127.0.0.1:" + p[2],
	}
	if docker {
		foreignCompose(one, "web", p[5]+":80")
		want = append(want, "foreign-exposed 0.0.0.0:"+p[5])
	}
	if rootless {
		publishPorts(low, `"`+p[6]+`:8080"`)
		low.Up()
		low.Expect(0, "down")
		publishPorts(low, `"81:8080"`)
		says(low, low.Expect(4, "up"), "only root may listen on port 81, which worker publishes")
		want = append(want, "privileged 127.0.0.1:81")
	}
	found, names := portFindings(one)
	i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "directory-gone 127.0.0.1:2") })
	if i < 0 {
		t.Fatalf("no lease of a directory that is gone: %v", names)
	}
	left := append(slices.Clone(want), names[i])
	slices.Sort(left)
	if d := cmp.Diff(left, names); d != "" {
		t.Errorf("found (-want +got):\n%s\n%+v", d, found)
	}
	for name, says := range map[string]string{
		"taken":               fmt.Sprintf("squatter (pid %d) of ", pid),
		"taken-by-other-user": fmt.Sprintf("of uid %d", stranger),
		"exposed":             "worker worker of project " + one.Project,
		"no-endpoint":         "worker worker of project " + idle.Project + " (" + idle.Dir + ") is up",
	} {
		if i := slices.IndexFunc(found, func(f portFinding) bool { return f.Name == name }); i >= 0 && !strings.Contains(found[i].Text, says) {
			t.Errorf("%s doesn't say %q: %s", name, says, found[i].Text)
		}
	}
	listed := one.Expect(0, "ports")
	for _, row := range []string{one.Project, two.Project, "directory gone", "reserved", "chosen", "127.0.0.1:" + p[0]} {
		if !strings.Contains(listed.Out, row) {
			t.Errorf("%q isn't in\n%s", row, listed.Out)
		}
	}

	// What is safe is given up, what runs goes on, and the printed commands help.
	before, pids := one.Containers(), one.Processes("worker")
	d := one.Expect(1, "doctor", "ports", "--fix")
	says(one, d, "fixed: 127.0.0.1:"+p[3]+" is leased to worker worker of project "+two.Project, "fixed: "+strings.Fields(names[i])[1])
	want = slices.DeleteFunc(want, func(n string) bool { return strings.HasPrefix(n, "stale-lease") })
	slices.Sort(want)
	if _, names = portFindings(one, "--fix"); !slices.Equal(names, want) {
		t.Errorf("after --fix: %v, want %v", names, want)
	}
	if after := one.Containers(); after["guard"].ID != before["guard"].ID || !slices.Equal(one.Processes("worker"), pids) {
		t.Errorf("it touched what runs: %v, before %v", after, before)
	}
	says(idle, idle.Expect(4, "up"), "port "+at[strings.LastIndexByte(at, ':')+1:]+" is leased twice", "port --release worker 8080`")
	idle.Expect(0, "port", "--release", "worker", "8080")
	idle.Up()
	if now := published(idle); now == at {
		t.Errorf("published on %s again, which another has", now)
	}

	// A registry that others can change: nothing is taken from it, and nothing started.
	idle.Expect(0, "down")
	if err := os.Chmod(registryOf(one), 0o666); err != nil {
		t.Fatal(err)
	}
	says(idle, idle.Expect(1, "up"), "leases.json can be changed by others (mode 0666)", "`chmod go-w "+registryOf(one)+"`")
	if left := withoutCaches(idle.Leftovers()); len(left) > 0 {
		t.Errorf("the refused up left %v", left)
	}
	if _, names = portFindings(one); !slices.ContainsFunc(names, func(n string) bool { return n == "registry " }) {
		t.Errorf("found %v", names)
	}
}
