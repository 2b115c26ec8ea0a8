//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
)

// zero is an empty capability set in /proc/PID/status.
const zero = "0000000000000000"

func TestB01_NoCapabilities(t *testing.T) {
	s := restrictedStands.Look(t, "a worker has no capability in any set, and the file can't add one")
	for _, r := range s.Control("status CapEff -> 0", "socket AF_INET SOCK_RAW IPPROTO_ICMP -> ok") {
		if r.Probe == "status" && r.Seen == zero {
			t.Error("control: the ordinary container has no capability either")
		}
		if r.Probe == "socket" && !r.OK {
			t.Errorf("control: raw socket: %s", r.Seen)
		}
	}
	s.Sees("worker",
		"status CapEff -> "+zero, "status CapPrm -> "+zero, "status CapInh -> "+zero, "status CapBnd -> "+zero, "status CapAmb -> "+zero,
		"status CapEff 1 -> "+zero, "status CapBnd 1 -> "+zero,
		"socket AF_INET SOCK_RAW IPPROTO_ICMP -> EPERM|EACCES", "mknod /scratch/null -> EPERM|ENOENT")
	if got := s.ProcStatus("guard", "CapEff"); got != zero {
		t.Errorf("the guard has capabilities: %s", got)
	}
	if got := s.ProcStatus("guard", "CapBnd"); got != zero {
		t.Errorf("the guard's bounding set: %s", got)
	}
	// NET_BIND_SERVICE (10) and NET_ADMIN (12), see capabilities(7)
	if got := s.ProcStatus("room", "CapEff"); got != fmt.Sprintf("%016x", 1<<10|1<<12) {
		t.Errorf("the room's capabilities: %s", got)
	}
	s = scenario.New(t, "restricted", "nor does up take such a file")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: host", "image: host\n    cap_add: [NET_ADMIN]", 1))
	s.Expect(3, "validate")
	s.Expect(3, "up")
}

func TestB02_NoNewPrivilegesAndSeccomp(t *testing.T) {
	s := restrictedStands.Look(t, "no process of a worker gains privileges, and system calls that lead out are refused")
	for _, r := range s.Control("status NoNewPrivs -> 0", "socket AF_VSOCK SOCK_STREAM -> ok|EAFNOSUPPORT|ENODEV") {
		if !r.OK {
			t.Errorf("control: %s %v: %s", r.Probe, r.Args, r.Seen)
		}
	}
	s.Sees("worker",
		"status NoNewPrivs -> 1", "status Seccomp -> 2", "status NoNewPrivs 1 -> 1", "status Seccomp 1 -> 2",
		"socket AF_VSOCK SOCK_STREAM -> EPERM|EACCES", "socket AF_ALG SOCK_SEQPACKET -> EPERM|EACCES", "socket AF_PACKET SOCK_RAW -> EPERM|EACCES",
		"syscall getpid -> ok", "syscall clone3 -> ENOSYS",
		"syscall add_key -> EPERM|ENOSYS", "syscall keyctl -> EPERM|ENOSYS", "syscall bpf -> EPERM|ENOSYS", "syscall perf_event_open -> EPERM|ENOSYS|EACCES",
		"syscall mount -> EPERM", "syscall umount2 -> EPERM", "syscall pivot_root -> EPERM", "syscall setns -> EPERM", "syscall unshare -> EPERM",
		"syscall init_module -> EPERM", "syscall kexec_load -> EPERM", "syscall reboot -> EPERM", "syscall open_by_handle_at -> EPERM",
		"syscall userfaultfd -> EPERM|ENOSYS", "namespace user -> EPERM", "namespace net -> EPERM", "namespace mnt -> EPERM")
	for _, service := range []string{"room", "guard"} {
		if nnp, sec := s.ProcStatus(service, "NoNewPrivs"), s.ProcStatus(service, "Seccomp"); nnp != "1" || sec != "2" {
			t.Errorf("%s: NoNewPrivs %s, Seccomp %s", service, nnp, sec)
		}
	}
	for _, service := range []string{"room", "guard", "worker"} {
		if got := s.ProcStatus(service, "CapBnd"); service == "worker" && got != zero || len(strings.Trim(got, "0")) > 4 {
			t.Errorf("%s is privileged: %s", service, got)
		}
	}
}

func TestB03_ReadOnlyButWhatIsDeclared(t *testing.T) {
	writesOnlyToDeclared(mountsStands.Look(t, "a worker writes to declared mounts and limited tmpfs and to nothing else"))
}

// writesOnlyToDeclared checks the worker of testdata/mounts.
func writesOnlyToDeclared(s *scenario.Scenario) {
	s.Helper()
	got := s.Probe("worker", "writable")[0].Seen
	// /dev/mqueue is the IPC namespace's own and holds no files
	want := []string{"/dev/shm", "/home/worker", "/scratch", "/tmp", "/workspace/out"}
	have := slices.DeleteFunc(strings.Split(got, ","), func(p string) bool { return p == "/dev/mqueue" })
	if !slices.Equal(have, want) {
		s.Errorf("writable: %v, want %v", have, want)
	}
	s.Sees("worker",
		"write /workspace/out/new -> ok", "write /scratch/new -> ok", "write /home/worker/new -> ok", "write /tmp/new -> ok", "write /dev/shm/new -> ok",
		"write /workspace/in/file.txt -> EROFS|EACCES", "write /workspace/in/new -> EROFS|EACCES", "write /new -> EROFS|EACCES", "mkdir /etc/new -> EROFS|EACCES",
		"write /etc/passwd -> EROFS|EACCES", "write /usr/new -> EROFS|EACCES", "write /opt/workshop/workshop-init -> EROFS|EACCES|ETXTBSY",
		"write /etc/resolv.conf -> EROFS|EACCES", "write /etc/hosts -> EROFS|EACCES",
		"mount / -> ro", "mount /opt/workshop -> ro",
		"fill /scratch/big 3M -> ok", "fill /scratch/big 6M -> ENOSPC")
	for _, service := range []string{"worker"} {
		var st unix.Statfs_t
		if err := unix.Statfs(fmt.Sprintf("/proc/%d/root", s.Pid(service)), &st); err != nil || st.Flags&unix.ST_RDONLY == 0 {
			s.Errorf("%s: the root file system can be written (%v)", service, err)
		}
	}
}

func TestB04_NeverRoot(t *testing.T) {
	s := mountsStands.Look(t, "a worker is never root, and files in rw mounts belong to its uid on the host")
	s.Sees("worker", fmt.Sprintf("uid -> %d:%d", scenario.UID, scenario.UID), fmt.Sprintf("status Uid 1 -> %s", strings.TrimSpace(strings.Repeat(fmt.Sprint(scenario.UID)+" ", 4))),
		`write /workspace/out/mine text="from inside" -> ok`)
	info, err := os.Stat(filepath.Join(s.Dir, "out/mine"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != scenario.UID || st.Gid != scenario.UID {
		t.Errorf("the file belongs to %d:%d", st.Uid, st.Gid)
	}
	if d := s.Run("exec", "--user", "0", "worker", "--", "/opt/workshop/workshop-init", "probe", "uid"); d.Code == 0 {
		t.Errorf("exec as root was run: %s", d.Out)
	}
	s = scenario.New(t, "mounts", "nor does up make it one")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: host", "image: host\n    user: \"0:0\"", 1))
	if d := s.Run("up"); d.Code != 3 && d.Code != 4 {
		t.Errorf("user 0: exit code %d", d.Code)
	}
}

// stormOfProcesses: at the limit of processes sessions don't start, and PID 1, which
// is held to it as well, goes on: it has all the threads that it will ever need.
func stormOfProcesses(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	before, threads := s.Containers()["worker"].Started, s.ProcStatus("worker", "Threads")
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Run("exec", "worker", "--", "sh", "-c", "for i in $(seq 60); do (sleep 0.$((i%9+1)) &); done; for i in $(seq 300); do (true &); (sleep 0.2 &); done")
	})
	for range 10 {
		wg.Go(func() { s.Run("call", "--approve-all", "worker", "shell", "command=true") })
	}
	wg.Wait()
	if is := s.Containers()["worker"]; is.State != "running" || is.Started != before {
		t.Fatalf("after a storm of processes the worker is %s, of %v, not %v", is.State, is.Started, before)
	}
	if now := s.ProcStatus("worker", "Threads"); now != threads {
		t.Errorf("PID 1 has %s threads, and had %s", now, threads)
	}
}

func TestB05_Limits(t *testing.T) {
	s := scenario.New(t, "limits", "memory, cpu and processes are limited, and there is no swap beyond memory")
	s.Up()
	// By a shell, so that the kernel prefers these to PID 1, as it does any program. While
	// the memory of one that was killed is still counted, it looks for another one.
	if d := s.Run("exec", "worker", "--", "sh", "-c", compose.InitPath+" probe 'memory 8M -> ok' 'memory 256M -> killed' 'processes 5 -> ok' 'processes 200 -> EAGAIN'; exit $?"); d.Code != 0 {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	if got, want := s.Limits("worker"), (scenario.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 48}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	stormOfProcesses(t, s)
	// What was killed is told of a command that succeeds as well, and of no later one.
	d := s.Run("call", "--approve-all", "worker", "shell", "command=(head -c 100M /dev/zero | tail -c 90M > /dev/null); true")
	if want := "a process was OOM-killed while the command ran: the worker's memory was used up"; d.Code != 0 || !strings.Contains(d.Out+d.Err, want) {
		t.Errorf("exit code %d, %s%s, want 0 and %q", d.Code, d.Out, d.Err, want)
	}
	if d = s.Run("call", "--approve-all", "worker", "shell", "command=true"); strings.Contains(d.Out+d.Err, "OOM") {
		t.Errorf("afterwards: %s%s", d.Out, d.Err)
	}
	// The program that grows is the largest one, not the worker's init.
	d = s.Run("call", "--approve-all", "worker", "shell", "command=head -c 35M /dev/zero > /tmp/full; head -c 100M /dev/zero | tail -c 90M > /dev/null")
	if want := regexp.MustCompile(`OOM-killed, probably: .*; of it, [3-6][0-9]M are files in /tmp\b`); !want.MatchString(d.Out + d.Err) {
		t.Errorf("a full /tmp: %s%s, want %s", d.Out, d.Err, want)
	}
	d = s.Run("exec", "worker", "--", "sh", "-c", "head -c 100M /dev/zero | tail -c 90M > /dev/null; kill -9 $$")
	if want := regexp.MustCompile("hint: 137 is SIGKILL: .* limit of 64M .*; of it, [3-6][0-9]M are files in /tmp: remove some, or all with `workshop (-.*)?restart worker`"); !want.MatchString(d.Err) {
		t.Errorf("exec with a full /tmp: %s, want %s", d.Err, want)
	}
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "resources: {memory: 64M, cpu: 0.5, pids: 48}", "network: restricted", 1))
	s.Up()
	for _, service := range []string{"worker", "room", "guard"} {
		if l := s.Limits(service); l.Memory == 0 || l.Swap != 0 || l.CPUs == 0 || l.Pids == 0 {
			t.Errorf("%s: limits %+v", service, l)
		}
	}
}

// PID 1, which compares the mounts four times a second, needs no memory for it. It would be
// killed where the memory is used up by files, or by a process that was killed and is still
// counted.
func TestB05_FullMemory(t *testing.T) {
	s := scenario.New(t, "limits", "a worker whose memory is used up goes on, and works once there is some again")
	s.Up()
	before := s.Containers()["worker"].Started
	restore := s.UseUpMemory("worker")
	time.Sleep(2 * time.Second)
	if is := s.Containers()["worker"]; is.State != "running" || is.Started != before {
		t.Fatalf("the worker is %s, of %v, not %v", is.State, is.Started, before)
	}
	restore()
	s.Expect(0, "exec", "worker", "--", "true")
}

func TestB06_NothingOfTheHost(t *testing.T) {
	s := restrictedStands.Look(t, "no namespace of the host, no device and no engine socket is in a container")
	for _, service := range []string{"worker", "room", "guard"} {
		if l := devices(t, s.Pid(service)); !slices.Equal(l, []string{"full", "null", "random", "tty", "urandom", "zero"}) {
			t.Errorf("%s has the devices %v", service, l)
		}
		for _, m := range s.Inspect(service).Mounts {
			if strings.HasSuffix(m.Source, ".sock") {
				t.Errorf("%s: mounts %s", service, m.Source)
			}
		}
		kinds := []string{"pid", "ipc", "mnt", "net", "uts", "cgroup"}
		if scenario.TheEngine() == scenario.Rootless {
			kinds = append(kinds, "user")
		}
		for _, kind := range kinds {
			here, _ := os.Readlink("/proc/thread-self/ns/" + kind) // the first thread may have been left in another
			// The guard of the namespace engine dials from this machine's network.
			shared := kind == "net" && service == "guard" && !scenario.DockerAPI()
			if there := s.NamespaceOf(service, kind); (here == there) != shared {
				t.Errorf("%s: its %s namespace is %s, this machine's %s", service, kind, there, here)
			}
		}
	}
	for _, line := range strings.Fields(s.Probe("worker", "read /proc/self/cgroup bytes=4000")[0].Detail) {
		if !strings.HasSuffix(line, ":/") {
			t.Errorf("the worker sees a cgroup of the host: %s", line)
		}
	}
	s.Sees("worker", "status Name 1 -> workshop-init", "list /proc/1/fd -> EACCES", "read /proc/1/environ -> EACCES",
		"read /var/run/docker.sock -> ENOENT|EACCES", "read /run/docker.sock -> ENOENT|EACCES",
		"read /dev/mem -> ENOENT|EACCES", "read /dev/vda -> ENOENT|EACCES")
}

// devices lists the device nodes in /dev of a process, which are what a
// container must have; those of terminals, /dev/pts and /dev/console, aside.
func devices(t *testing.T, pid int) (names []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/root/dev", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all { // a node may be bound over a file, so its entry tells nothing
		if info, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil && info.Mode()&os.ModeDevice != 0 && e.Name() != "console" && e.Name() != "ptmx" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestB12_OursIsTheMainProcess(t *testing.T) {
	s := restrictedStands.Look(t, "a worker's main process is the gate; it reaps, it can't be killed or forged from inside")
	s.Sees("worker", "status Name 1 -> workshop-init", "status PPid 1 -> 0",
		"signal SIGKILL 1 -> ok|EPERM", "status Name 1 -> workshop-init") // the kernel keeps SIGKILL from an init, pid_namespaces(7)
	if a := s.Args("worker"); len(a) < 2 || !strings.HasSuffix(a[0], "workshop-init") || a[1] != "gate" {
		t.Errorf("the main process is %q", a)
	}
}
