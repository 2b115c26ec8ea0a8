//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// zero is an empty capability set in /proc/PID/status.
const zero = "0000000000000000"

func TestB01_NoCapabilities(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker has no capability in any set, and the file can't add one")
	s.Up()
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
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: host", "image: host\n    cap_add: [NET_ADMIN]", 1))
	s.Expect(3, "validate")
	s.Expect(3, "up")
}

func TestB02_NoNewPrivilegesAndSeccomp(t *testing.T) {
	s := scenario.New(t, "restricted", "no process of a worker gains privileges, and system calls that lead out are refused")
	s.Up()
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
		if s.Inspect(service).HostConfig.Privileged {
			t.Errorf("%s is privileged", service)
		}
	}
}

func TestB03_ReadOnlyButWhatIsDeclared(t *testing.T) {
	s := scenario.New(t, "mounts", "a worker writes to declared mounts and limited tmpfs and to nothing else")
	s.Up()
	got := s.Probe("worker", "writable")[0].Seen
	// /dev/mqueue is the IPC namespace's own and holds no files
	want := []string{"/dev/shm", "/home/worker", "/scratch", "/tmp", "/workspace/out"}
	have := slices.DeleteFunc(strings.Split(got, ","), func(p string) bool { return p == "/dev/mqueue" })
	if !slices.Equal(have, want) {
		t.Errorf("writable: %v, want %v", have, want)
	}
	s.Sees("worker",
		"write /workspace/out/new -> ok", "write /scratch/new -> ok", "write /home/worker/new -> ok", "write /tmp/new -> ok", "write /dev/shm/new -> ok",
		"write /workspace/in/file.txt -> EROFS", "write /workspace/in/new -> EROFS", "write /new -> EROFS|EACCES", "mkdir /etc/new -> EROFS|EACCES",
		"write /etc/passwd -> EROFS|EACCES", "write /usr/new -> EROFS|EACCES", "write /opt/workshop/workshop-init -> EROFS|EACCES|ETXTBSY",
		"write /etc/resolv.conf -> EROFS|EACCES", "write /etc/hosts -> EROFS|EACCES",
		"mount / -> ro", "mount /opt/workshop -> ro",
		"fill /scratch/big 3M -> ok", "fill /scratch/big 6M -> ENOSPC")
	for _, service := range []string{"worker"} {
		if !s.Inspect(service).HostConfig.ReadonlyRootfs {
			t.Errorf("%s: the root file system can be written", service)
		}
	}
}

func TestB04_NeverRoot(t *testing.T) {
	s := scenario.New(t, "mounts", "a worker is never root, and files in rw mounts belong to its uid on the host")
	s.Up()
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
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: host", "image: host\n    user: \"0:0\"", 1))
	if d := s.Run("up"); d.Code != 3 && d.Code != 4 {
		t.Errorf("user 0: exit code %d", d.Code)
	}
}

func TestB05_Limits(t *testing.T) {
	s := scenario.New(t, "limits", "memory, cpu and processes are limited, and there is no swap beyond memory")
	s.Up()
	s.Sees("worker", "memory 8M -> ok", "memory 256M -> killed", "processes 5 -> ok", "processes 200 -> EAGAIN")
	h := s.Inspect("worker").HostConfig
	if h.Memory != 64<<20 || h.MemorySwap != h.Memory || h.NanoCPUs != 5e8 || h.PidsLimit == nil || *h.PidsLimit != 40 {
		t.Errorf("memory %d, with swap %d, cpu %d, pids %v", h.Memory, h.MemorySwap, h.NanoCPUs, h.PidsLimit)
	}
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "resources: {memory: 64M, cpu: 0.5, pids: 40}", "network: restricted", 1))
	s.Up()
	for _, service := range []string{"worker", "room", "guard"} {
		h := s.Inspect(service).HostConfig
		if h.Memory == 0 || h.MemorySwap != h.Memory || h.NanoCPUs == 0 || h.PidsLimit == nil || *h.PidsLimit <= 0 {
			t.Errorf("%s: memory %d, with swap %d, cpu %d, pids %v", service, h.Memory, h.MemorySwap, h.NanoCPUs, h.PidsLimit)
		}
	}
}

func TestB06_NothingOfTheHost(t *testing.T) {
	s := scenario.New(t, "restricted", "no namespace of the host, no device and no engine socket is in a container")
	s.Up()
	for _, service := range []string{"worker", "room", "guard"} {
		i := s.Inspect(service)
		h := i.HostConfig
		if h.PidMode != "" || h.UTSMode != "" || h.NetworkMode.IsHost() || h.IpcMode == "host" || len(h.Devices) > 0 || len(h.DeviceRequests) > 0 || h.Privileged {
			t.Errorf("%s: pid %q uts %q network %q ipc %q devices %v", service, h.PidMode, h.UTSMode, h.NetworkMode, h.IpcMode, h.Devices)
		}
		for _, m := range i.Mounts {
			if strings.HasSuffix(m.Source, ".sock") {
				t.Errorf("%s: mounts %s", service, m.Source)
			}
		}
		for _, ns := range []string{"pid", "ipc", "mnt", "net", "uts", "cgroup"} {
			here, _ := os.Readlink("/proc/self/ns/" + ns)
			there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", s.Pid(service), ns))
			if err != nil || here == there {
				t.Errorf("%s shares the host's %s namespace (%v)", service, ns, err)
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

func TestB12_OursIsTheMainProcess(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker's main process is the gate; it reaps, it can't be killed or forged from inside")
	s.Up()
	s.Sees("worker", "status Name 1 -> workshop-init", "status PPid 1 -> 0",
		"signal SIGKILL 1 -> ok|EPERM", "status Name 1 -> workshop-init") // the kernel keeps SIGKILL from an init, pid_namespaces(7)
	i := s.Inspect("worker")
	if len(i.Config.Entrypoint) == 0 || !strings.HasSuffix(i.Config.Entrypoint[0], "workshop-init") || len(i.Config.Cmd) != 0 {
		t.Errorf("entrypoint %v, cmd %v", i.Config.Entrypoint, i.Config.Cmd)
	}
}
