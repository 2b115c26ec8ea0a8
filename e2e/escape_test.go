//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/probe"
)

// escapes is a workshop whose worker has the program of package attacks, with
// tries that nothing which is shipped can make.
func escapes(t *testing.T, intent string) (s *scenario.Scenario, inside, outside string) {
	t.Helper()
	return escapesOf(t, "restricted", intent)
}

// escapesOf is escapes of another directory of testdata.
func escapesOf(t *testing.T, dir, intent string) (s *scenario.Scenario, inside, outside string) {
	t.Helper()
	s = scenario.New(t, dir, intent)
	withIntruder(s)
	inside, outside = intruder(s)
	return s, inside, outside
}

// looking is escapes for tests that change nothing, up already.
func looking(t *testing.T, intent string) (s *scenario.Scenario, inside, outside string) {
	t.Helper()
	s = intruderStands.Look(t, intent)
	inside, outside = intruder(s)
	return s, inside, outside
}

// withIntruder mounts the program, and directories to try it with.
func withIntruder(s *scenario.Scenario) {
	s.Helper()
	addIntruder(s)
	inside, _ := intruder(s)
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./intruder:"+inside+"\n      - ./in:/workspace/in\n      - ./out:/workspace/out:rw", 1))
	s.Write("in/a.txt", "in\n")
	s.Write("out/a.txt", "out\n")
}

// refusedHere runs tries as the worker, which must see what they say, and each
// name of controls as root of this machine, which must get through: else the
// refusal shows nothing.
func refusedHere(s *scenario.Scenario, inside, outside string, controls []string, tries ...string) {
	s.Helper()
	// With mounts of its own: what it mounts there goes with it.
	out, _ := exec.Command("unshare", append([]string{"--mount", outside, "probe"}, controls...)...).Output()
	seen := probeResults(string(out))
	if len(seen) != len(controls) {
		s.Fatalf("control: %d results\n%s", len(seen), out)
	}
	for i, r := range seen {
		if r.Seen != "ok" {
			s.Errorf("control: on this machine %s: %s (%s): its refusal shows nothing", controls[i], r.Seen, r.Detail)
		}
	}
	s.SeesBy("worker", inside, tries...)
}

func TestB02_CallsThatLedOut(t *testing.T) {
	s, in, out := looking(t, "system calls and sockets that have led out of containers are refused, whatever their arguments")
	const no = "EPERM|ENOSYS|EACCES"
	refusedHere(s, in, out,
		[]string{"kernel getpid", "kernel add_key", "kernel keyctl", "kernel io_uring_setup", "kernel userfaultfd", "kernel bpf", "kernel chroot", "kernel clone3", "kernel syslog",
			"socket AF_VSOCK SOCK_STREAM", "socket AF_PACKET SOCK_RAW", "mounting tmpfs", "mounting tmpfs new=1", "mounting bind", "node char 1 3"},
		"kernel getpid -> ok",
		"kernel add_key -> "+no, "kernel keyctl -> "+no, "kernel request_key -> "+no, "kernel io_uring_setup -> "+no, "kernel userfaultfd -> "+no, "kernel bpf -> "+no,
		"kernel chroot -> "+no, "kernel unshare -> "+no, "kernel clone3 -> "+no, "kernel syslog -> "+no, "kernel sethostname -> "+no, "kernel open_by_handle_at -> "+no,
		"namespace user -> "+no, "namespace mnt -> "+no, "namespace net -> "+no, "namespace pid -> "+no, "userns uid -> "+no,
		"socket AF_VSOCK SOCK_STREAM -> "+no, "socket AF_PACKET SOCK_RAW -> "+no, "socket AF_ALG SOCK_SEQPACKET -> "+no)
}

// TestB02_OthersKeepTheirPriority: a process of a worker sets its own priority, and
// nobody else's, which the kernel lets it do for all of its uid.
func TestB02_OthersKeepTheirPriority(t *testing.T) {
	s, in, out := looking(t, "a worker gives no other process less of the processor, of the disk or of descriptors; nice, ionice and chrt work")
	asleep := exec.Command("sleep", "60")
	asleep.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := asleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asleep.Process.Kill(); _ = asleep.Wait() }()
	var controls, tries []string
	for _, call := range []string{"sched_setscheduler", "sched_setparam", "sched_setattr", "process", "group", "ioprio_set", "prlimit64"} {
		controls = append(controls, fmt.Sprintf("slow %s %d", call, asleep.Process.Pid))
		tries = append(tries, "slow "+call+" 1 -> EPERM")
	}
	tries = append(tries, "slow group 0 -> EPERM", "slow user 0 -> EPERM",
		"slow sched_setscheduler 0 -> ok", "slow sched_setparam 0 -> ok", "slow sched_setattr 0 -> ok", "slow process 0 -> ok", "slow ioprio_set 0 -> ok")
	refusedHere(s, in, out, controls, tries...)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"nice -n 5 nice", "5", 0},
		{"ionice -c 3 ionice", "idle", 0},
		{"chrt -b 0 sh -c 'chrt -p $$'", "SCHED_BATCH", 0},
		{"prlimit --nofile=100 sh -c 'ulimit -n'", "100", 0},
		{"prlimit --pid 1 --nofile", "NOFILE", 0},
		{"taskset -p $$", "affinity", 0},
		{"renice -n 5 -p $$", "Operation not permitted", 1},
	} {
		if d := s.Run("exec", "worker", "--", "sh", "-c", c.line); d.Code != c.code || !strings.Contains(d.Out+d.Err, c.want) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", c.line, d.Code, d.Out+d.Err, c.code, c.want)
		}
	}
}

func TestB06_OtherProcesses(t *testing.T) {
	s, in, out := looking(t, "a worker takes hold of no other process: not of its own PID 1, not of the room, the guard or who started them, and of no namespace of theirs")
	tries := []string{
		"trace seize 1 -> EPERM", "trace memory 1 -> EPERM", "trace descriptor 1 -> EPERM",
		"list /proc/1/root -> EACCES|EPERM", "read /proc/1/root/etc/shadow -> EACCES|EPERM", "list /proc/1/cwd/.. -> EACCES|EPERM", "read /proc/1/mem -> EACCES|EPERM", "list /proc/1/map_files -> EACCES|EPERM",
		"parent pid -> EPERM", "parent user -> EPERM", "parent net -> EPERM", "parent mnt -> EPERM", "parent ipc -> EPERM",
		"signal SIGKILL 1 -> ok|EPERM", "status Name 1 -> workshop-init",
	}
	for _, kind := range []string{"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"} {
		tries = append(tries, "enter /proc/1/ns/"+kind+" -> EACCES|EPERM|ENOENT", "enter /proc/self/ns/"+kind+" -> EPERM|EINVAL")
	}
	pids := []int{os.Getpid(), s.Pid("guard"), s.Pid("room"), s.Pid("worker")}
	if !scenario.DockerAPI() {
		pids = append(pids, s.Supervisor())
	}
	for _, pid := range pids {
		tries = append(tries, fmt.Sprintf("trace seize %d -> ESRCH", pid), fmt.Sprintf("trace descriptor %d -> ESRCH", pid), fmt.Sprintf("signal SIGKILL %d -> ESRCH", pid), fmt.Sprintf("status Uid %d -> ENOENT", pid))
	}
	// By the numbers of a namespace above, PID 1 would be another one.
	if got := s.Probe("worker", "read /proc/1/cmdline")[0].Detail; !strings.HasPrefix(got, strings.Join(s.Args("worker")[:2], "\x00")) {
		t.Errorf("its PID 1 is %q", got)
	}
	asleep := exec.Command("sleep", "60")
	if err := asleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asleep.Process.Kill(); _ = asleep.Wait() }()
	refusedHere(s, in, out, []string{fmt.Sprintf("trace memory %d", os.Getpid()), fmt.Sprintf("trace seize %d", asleep.Process.Pid), fmt.Sprintf("trace descriptor %d", asleep.Process.Pid), "enter /proc/self/ns/uts"}, tries...)
}

func TestB03_TheKernelsFiles(t *testing.T) {
	s, in, _ := looking(t, "nothing in /proc and /sys can be written that speaks to the machine's kernel, and what tells of the machine is hidden")
	const no = "EROFS|EACCES|EPERM|ENOENT"
	var tries []string
	for _, name := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/binfmt_misc/register",
		"/proc/sys/kernel/shm_rmid_forced", "/proc/sys/fs/mqueue/queues_max", "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/1/oom_score_adj", "/proc/self/uid_map",
		"/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs",
		"/sys/module/apparmor/parameters/mode", "/sys/power/state", "/sys/kernel/mm/ksm/run", "/sys/block/x", "/sys/class/net/lo/ifalias",
	} {
		tries = append(tries, fmt.Sprintf("write %s text=1 -> %s", name, no))
	}
	for _, name := range []string{"/proc/kcore", "/proc/kmem", "/proc/mem", "/proc/kmsg", "/proc/1/environ", "/sys/kernel/debug/x", "/sys/kernel/security/x"} {
		tries = append(tries, "read "+name+" bytes=1 -> EOF|"+no) // masked: another file without a byte
	}
	for _, name := range []string{"/proc/acpi", "/proc/scsi", "/sys/firmware"} {
		tries = append(tries, "list "+name+" -> empty|"+no)
	}
	s.SeesBy("worker", in, tries...)
	// Most of them are root's, and would be refused by that alone.
	mounts := mountsOf(s, "worker")
	for _, name := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"} {
		if _, err := os.Stat(name); err == nil && !slices.Contains(mounts[name], "ro") {
			t.Errorf("%s isn't read-only: %v", name, mounts[name])
		}
	}
	for target, options := range mounts {
		if target == "/sys/fs/cgroup" && scenario.DockerAPI() {
			continue // where groups are of version 1, a tmpfs around them, root's
		}
		if strings.HasPrefix(target, "/sys") && !slices.Contains(options, "ro") {
			t.Errorf("%s isn't read-only: %v", target, options)
		}
	}
	for _, name := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats"} {
		if r := s.Probe("worker", "read "+name)[0]; r.Seen == "ok" && r.Detail != "" {
			t.Errorf("%s can be read: %.80s", name, r.Detail)
		}
	}
}

// mountsOf are a service's mounts with their options (proc_pid_mountinfo(5)).
func mountsOf(s *scenario.Scenario, service string) map[string][]string {
	s.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", s.Pid(service)))
	if err != nil {
		s.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		all[f[4]] = strings.Split(f[5], ",")
	}
	return all
}

func TestB03_NoMountOfItsOwn(t *testing.T) {
	s, in, out := looking(t, "a worker mounts nothing, by the old calls or the new ones, and no mount of its can be made writable")
	const no = "EPERM|ENOSYS|EACCES"
	tries := []string{}
	for _, kind := range []string{"bind", "tmpfs", "proc", "sysfs", "cgroup", "cgroup2", "overlay", "devpts", "mqueue"} {
		tries = append(tries, "mounting "+kind+" -> "+no)
	}
	for _, kind := range []string{"tmpfs", "proc", "cgroup2"} {
		tries = append(tries, "mounting "+kind+" new=1 -> "+no)
	}
	for _, path := range []string{"/", "/workspace/in", "/proc/sys", "/sys", "/opt/workshop"} {
		tries = append(tries, "remount "+path+" -> "+no)
	}
	tries = append(tries, "mounting cgroup data=memory -> "+no, "write /workspace/in/new -> EROFS", "write /new -> EROFS|EACCES")
	refusedHere(s, in, out, []string{"mounting tmpfs", "mounting bind", "mounting tmpfs new=1", "mounting proc"}, tries...)
}

func TestB06_Devices(t *testing.T) {
	s, in, out := looking(t, "a worker has the devices that programs need, can open no other, and can make none")
	// fd, stdin and the like are links; pts, shm and mqueue its own mounts.
	harmless := []string{"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
	for _, name := range strings.Split(s.Probe("worker", "list /dev")[0].Seen, ",") {
		if !slices.Contains(harmless, name) {
			t.Errorf("/dev/%s is there", name)
		}
	}
	tries := []string{"device /dev/null -> ok", "list /dev/pts -> ptmx|0,ptmx", "read /proc/kcore bytes=1 -> EOF|EACCES|EPERM|ENOENT|ok"}
	for _, name := range []string{"kvm", "mem", "kmem", "port", "fuse", "net/tun", "loop-control", "loop0", "vda", "sda", "vhost-net", "vsock", "dri/card0", "mapper/control", "snd/timer", "input/event0", "tty1", "userfaultfd"} {
		tries = append(tries, "device /dev/"+name+" -> ENOENT") // that its owner is root would be another refusal
	}
	for _, numbers := range []string{"char 1 3", "char 1 1", "char 10 232", "block 7 0", "block 8 0", "block 254 0"} {
		tries = append(tries, "node "+numbers+" -> EPERM")
	}
	refusedHere(s, in, out, []string{"device /dev/null", "node char 1 3"}, tries...)
}

func TestB03_MountsOfLaterStayApart(t *testing.T) {
	s, in, _ := escapes(t, "what is mounted on the machine after the start is not seen in a worker")
	// Where the source lies, mounts are handed on to whoever shares them.
	bind := func(args ...string) {
		if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
			t.Fatalf("mount %v: %v\n%s", args, err, out)
		}
	}
	bind("--bind", s.Dir, s.Dir)
	t.Cleanup(func() { _ = exec.Command("umount", "--recursive", s.Dir).Run() })
	bind("--make-shared", s.Dir)
	mkdir(t, s.Dir, "in/later")
	s.Chown()
	s.Up()
	s.SeesBy("worker", in, "list /workspace/in/later -> empty")
	bind("-t", "tmpfs", "-o", "size=64k", "later", filepath.Join(s.Dir, "in/later"))
	s.Write("in/later/file", "later")
	if got := s.Read("in/later/file"); got != "later" {
		t.Fatalf("control: %q", got)
	}
	s.SeesBy("worker", in, "list /workspace/in/later -> empty", "mount /workspace/in/later -> none")
	s.Expect(0, "restart", "worker")
	s.SeesBy("worker", in, "list /workspace/in/later -> empty") // not even to one that starts now: binds are not recursive (B7)
}

func TestB02_SetuidFilesGiveNothing(t *testing.T) {
	s, in, outside := escapes(t, "a program that belongs to root and has the setuid bit, or has capabilities of its own, gives a worker nothing, wherever it lies")
	for _, name := range []string{"in/suid", "out/suid"} {
		b, err := os.ReadFile(outside)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.Dir, name), b, 0o755)
		}
		if err == nil {
			err = os.Chown(filepath.Join(s.Dir, name), 0, 0)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(s.Dir, name), os.ModeSetuid|os.ModeSetgid|0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Up()
	ids := func(id int) string { return strings.TrimSpace(strings.Repeat(fmt.Sprint(id)+" ", 4)) }
	control := exec.Command("setpriv", "--reuid", fmt.Sprint(scenario.UID), "--regid", fmt.Sprint(scenario.UID), "--clear-groups", filepath.Join(s.Dir, "in/suid"), "probe", "status Uid")
	if out, err := control.CombinedOutput(); err != nil || !strings.Contains(string(out), fmt.Sprintf(`"seen":"%d 0 0 0"`, scenario.UID)) {
		t.Errorf("control: on this machine it gives nothing either: %v %s", err, out)
	}
	for _, program := range []string{in, "/workspace/in/suid", "/workspace/out/suid"} {
		s.SeesBy("worker", program, "status Uid -> "+ids(scenario.UID), "status Gid -> "+ids(scenario.UID), "status CapEff -> "+zero, "status CapPrm -> "+zero, "status NoNewPrivs -> 1")
	}
	if !scenario.DockerAPI() { // which mounts binds as they are
		var counts []string
		for target, options := range mountsOf(s, "worker") {
			if !slices.Contains(options, "nosuid") {
				counts = append(counts, target)
			}
		}
		if counts != nil {
			t.Errorf("no_new_privs aside, the bit counts at %v", counts)
		}
	}
	s.SeesBy("worker", in, "chmod 4755 /workspace/out/a.txt -> 4755|0755|EPERM") // one of its own would be its own user's
	program, err := os.ReadFile(outside)
	if err != nil {
		t.Fatal(err)
	}
	image := scenario.At(t, "nor does one of the image", map[string]string{
		"workshop.yaml":     "workshop:\n  name: setuid\n  container:\n    image: workshop-e2e-setuid:1\n    network: none\n  workers: [worker]\n",
		"workers/worker.md": "---\nname: worker\ntools: []\n---\nx\n",
	})
	image.ImportImage("workshop-e2e-setuid:1", layer("bin/suid", 0o6755, program))
	image.Up()
	image.SeesBy("worker", "/bin/suid", "status Uid -> "+ids(scenario.UID), "status Gid -> "+ids(scenario.UID), "status CapEff -> "+zero, "status NoNewPrivs -> 1")
	// With `image: host`, this machine's.
	for _, name := range []string{"/usr/bin/su", "/usr/bin/newgrp", "/usr/bin/passwd", "/usr/bin/mount"} {
		if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeSetuid != 0 {
			if st := s.Run("exec", "--quiet", "worker", "--", "sh", "-c", name+` --help >/dev/null 2>&1 & grep -h ^Uid /proc/$!/status 2>/dev/null; true`); strings.Contains(st.Out, "\t0") {
				t.Errorf("%s runs as %s", name, st.Out)
			}
		}
	}
}

func TestB26_AbstractSocketsOfTheHost(t *testing.T) {
	s, in, outside := escapes(t, "an abstract socket of this machine is no way out of a worker, with a room or without")
	name := "@workshop-e2e-" + s.Project
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Up()
	if r := probeResults(output(exec.Command(outside, "probe", "unix "+name))); len(r) != 1 || r[0].Seen != "open" {
		t.Errorf("control: %+v", r)
	}
	s.SeesBy("worker", in, "unix "+name+" -> ECONNREFUSED", "abstract -> none")
	for _, r := range s.Intrude(&scenario.Intruder{Service: "room", Files: map[string]string{in: outside}, Program: in}, "unix "+name+" -> ECONNREFUSED") {
		if !r.OK {
			t.Errorf("as root in the room: %s (%s)", r.Seen, r.Detail)
		}
	}
	s, in, _ = escapesOf(t, "none", "nor of one that has no room")
	s.Up()
	s.SeesBy("worker", in, "unix "+name+" -> ECONNREFUSED", "abstract -> none") // Landlock alone would say EPERM
}

func output(cmd *exec.Cmd) string { out, _ := cmd.Output(); return string(out) }

func probeResults(out string) []probe.Result { return scenario.Results(out) }
