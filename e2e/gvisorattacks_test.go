//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// changesMounts tries, as root of a user namespace of its own, to change what a worker has
// read-only. gVisor lets it remount (pkg/sentry/vfs has no MNT_LOCK_READONLY).
const changesMounts = `
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    return errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(*args) < 0 else 'ok'
git = '/workspace/out/.git'
print('remount', [call('mount', None, m.encode(), None, 32 | 4096, None) for m in ('/', '/ca.pem', git, '/workspace/out/.vscode', '/run/outlet', '/opt/workshop', '/etc/hosts')])
print('umount', call('umount2', git.encode(), 2), call('umount2', b'/workspace/out', 2))
os.makedirs('/tmp/at', exist_ok=True)
print('bind', call('mount', b'/workspace/out', b'/tmp/at', None, 4096, None), call('mount', b'/workspace/out', b'/tmp/at', None, 4096 | 16384, None))
print('move', call('mount', git.encode(), b'/tmp/at', None, 8192, None), call('umount2', b'/tmp/at/.git', 2))
done = []
def attempt(what, f):
    try:
        f()
        done.append(what)
    except OSError:
        pass
for d in (git, '/tmp/at/.git', '/workspace/out/.vscode', '/run/outlet', '/opt/workshop', '/etc', '/'):
    attempt('mkdir ' + d, lambda: os.mkdir(d + '/p'))
    attempt('create ' + d, lambda: os.open(d + '/q', os.O_CREAT | os.O_WRONLY))
    attempt('symlink ' + d, lambda: os.symlink('/x', d + '/s'))
    attempt('rename ' + d, lambda: os.rename(d, d + '2'))
for f in (git + '/hooks/x', '/tmp/at/.git/hooks/x', '/ca.pem', '/run/outlet/outlet.sock', '/opt/workshop/workshop-init', '/etc/hosts'):
    attempt('open ' + f, lambda: os.open(f, os.O_RDWR))
    attempt('reopen ' + f, lambda: os.open('/proc/self/fd/%d' % os.open(f, os.O_RDONLY), os.O_RDWR))
    attempt('truncate ' + f, lambda: os.truncate(f, 0))
    attempt('utime ' + f, lambda: os.utime(f, (0, 0)))
    attempt('setxattr ' + f, lambda: os.setxattr(f, 'user.a', b'x'))
    attempt('unlink ' + f, lambda: os.unlink(f))
    attempt('link ' + f, lambda: os.link(f, '/workspace/out/linked'))
    try:
        os.chmod(f, 0o777) # it may say that it did: outside is looked
    except OSError:
        pass
print('done', done)
`

// lookAround reads what is there of PID 1, of sockets and of rights.
const lookAround = `
import ctypes, errno, os, socket, stat
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    return errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(*args) < 0 else 'ok'
class iovec(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
def memory(number, pid):
    here = ctypes.create_string_buffer(8)
    a, b = iovec(ctypes.cast(here, ctypes.c_void_p), 8), iovec(0xc000000000, 8)
    return call('syscall', number, pid, ctypes.byref(a), 1, ctypes.byref(b), 1, 0)
ours = [int(p) for p in os.listdir('/proc') if p.isdigit() and open('/proc/%s/cmdline' % p, 'rb').read().startswith(b'/opt/workshop/workshop-init')]
print('ours', 1 in ours, len(ours) > 1)
for pid in ours:
    got = [memory(310, pid), memory(311, pid), call('ptrace', 16, pid, 0, 0), call('ptrace', 0x4206, pid, 0, 0)]
    for name in ('mem', 'environ', 'maps', 'root/etc/hosts', 'cwd', 'exe', 'fd/0', 'fd/1', 'ns/mnt'):
        try:
            f = open('/proc/%d/%s' % (pid, name), 'rb')
            got.append(call('setns', f.fileno(), 0) if name == 'ns/mnt' else name + ' is open')
        except OSError:
            pass
    print('rights', sorted(set(got)))
sockets = []
for top in ('/run', '/tmp', '/opt', '/home', '/workspace', '/scratch', '/dev', '/var', '/etc'):
    for d, dirs, files in os.walk(top):
        sockets += [d + '/' + f for f in files if stat.S_ISSOCK(os.lstat(d + '/' + f).st_mode)]
print('sockets', sockets, os.listdir('/run/outlet'))
def reach(name, kind=socket.SOCK_STREAM):
    try:
        socket.socket(socket.AF_UNIX, kind).connect(name)
        return 'open'
    except OSError as e:
        return errno.errorcode[e.errno]
print('abstract', reach('\0workshop/ports'), reach('\0' + os.environ['ABSTRACT']))
print('outlet by others', reach('/run/outlet/outlet.sock', socket.SOCK_DGRAM), reach('/run/outlet/outlet.sock', socket.SOCK_SEQPACKET))
made = []
for family, kind, protocol in ((2, 3, 1), (17, 3, 0), (40, 1, 0), (38, 5, 0), (16, 3, 12)):
    try:
        socket.socket(family, kind, protocol)
        made.append((family, kind, protocol))
    except OSError:
        pass
print('made', made, call('mknod', b'/tmp/node', 0o20666, 0x101), call('sethostname', b'x', 1), call('reboot', 0x1234567))
`

// takesPorts listens at every place where it may be asked instead of the relay.
const takesPorts = `
import socket, sys
held = []
for port in (53, 80, 443, 536, 22):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        for address in ('0.0.0.0', '127.0.0.1', '198.51.100.10', '198.51.100.22'):
            s = socket.socket(socket.AF_INET, kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                s.bind((address, port))
                kind == socket.SOCK_STREAM and s.listen()
                held.append(s)
            except OSError:
                pass
print('holds', bool(held), flush=True)
sys.stdin.read()
`

// floods asks 20,000 questions at as many addresses, begins 3,000 connections, and waits for none.
const floods = `
import socket
def query(name):
    return b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00' + b''.join(bytes([len(x)]) + x for x in name.split(b'.')) + b'\x00\x00\x01\x00\x01'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
sent = 0
for i in range(20000):
    try:
        sent += s.sendto(query(b'f%d.denied.example.org' % i), ('10.%d.%d.1' % (i >> 8 & 255, i & 255), 53)) > 0
    except OSError:
        pass
all = []
for i in range(3000):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(('198.51.100.%d' % (1 + i % 200), 443))
    all.append(c)
print('sent', sent > 10000, len(all))
`

// TestGVisorHostileWorker: what a worker on gVisor tries with its mounts, its PID 1, its
// outlet's socket, ports and floods (B3, B8, B12, B22, B60) costs itself alone, and what it
// has not is as before.
func TestGVisorHostileWorker(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.New(t, "restricted", "a hostile worker on gVisor gains nothing by mounts, processes, sockets, ports and floods, and down ends it though its PID 1 is stopped")
		edit(s, "- ./ca.pem:/ca.pem\n", "- ./ca.pem:/ca.pem\n      - ./out:/workspace/out:rw\n")
		s.Write("out/.git/hooks/x", "hook")
		s.Write("out/.vscode/x", "tasks")
		s.Write("out/file", "file")
		s.Chown()
		return s
	})
	if s == nil {
		return
	}
	before, files := lives(s), tree(t, s.Dir)
	runs := func(what, script, want string, env ...string) {
		t.Helper()
		args := append([]string{"exec", "--quiet"}, env...)
		if d := s.Run(append(args, "worker", "--", "sh", "-c", script)...); d.Code != 0 || d.Out != want {
			t.Errorf("%s: exit code %d\n%s%swant\n%s", what, d.Code, d.Out, d.Err, want)
		}
		if now := lives(s); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Errorf("%s: %v, before %v", what, now, before)
		}
	}
	python := func(code string) string { return "python3 - <<'END'\n" + code + "END\n" }

	runs("mounts", "unshare -Urm "+python(changesMounts), `remount ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok']
umount EINVAL EINVAL
bind EINVAL ok
move EINVAL EINVAL
done []
`)
	if d := cmp.Diff(files, tree(t, s.Dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
	abstract := "workshop-e2e-" + s.Project
	l, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	runs("what is there", python(lookAround), `ours True True
rights ['EPERM']
rights ['EPERM']
sockets ['/run/outlet/outlet.sock'] ['outlet.sock']
abstract ECONNREFUSED ECONNREFUSED
outlet by others ECONNREFUSED ECONNREFUSED
made [] EPERM EPERM EPERM
`, "--env", "ABSTRACT="+abstract)

	s.Internet.Reset()
	taken := s.Command(t.Context(), "exec", "worker", "--", "python3", "-c", takesPorts)
	var said syncBuffer
	taken.Stdout, taken.Stderr = &said, os.Stderr
	until, err := taken.StdinPipe()
	if err == nil {
		err = taken.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Eventually("it holds ports", func() bool { return said.String() == "holds True\n" })
	s.Sees("worker", "connect 198.51.100.66:9000 -> ECONNREFUSED", "tcp 198.51.100.66:23 -> "+cutOff)
	until.Close()
	if err := taken.Wait(); err != nil {
		t.Error(err)
	}
	network := func(what string) {
		t.Helper()
		s.Eventually("the network works "+what, func() bool {
			return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=5s")[0].Seen == "200"
		})
		silent(s, testnet.Evil)
	}
	network("after its ports were taken")
	runs("a flood", python(floods), "sent True 3000\n")
	network("after a flood")

	runs("the stop of PID 1", "kill -STOP 1", "")
	if d := s.Run("exec", "worker", "--", "true"); d.Code != 0 || d.Counted > 5*time.Second {
		t.Errorf("exec: exit code %d after %v\n%s", d.Code, d.Took, d.Err)
	}
	s.Expect(0, "ps")
	if d := s.Run("verify"); d.Counted > time.Minute {
		t.Errorf("verify took %v", d.Took)
	} else {
		t.Logf("verify: exit code %d after %v", d.Code, d.Took)
	}
	runs("its going on", "kill -CONT 1", "")
	network("when PID 1 goes on")

	s.Run("exec", "--quiet", "worker", "--", "kill", "-KILL", "1")
	s.Eventually("the worker ended", func() bool { return s.Containers()["worker"].State == "exited" })
	says(s, s.Run("exec", "worker", "--", "true"), "workshop up")
	goOn(s, before, "guard", "room", "outlet")
	s.Up()
	network("of the next worker")
	// An interface of the room's would be one of gVisor's, which no rule of the room sees.
	s.Stop("worker")
	s.InRoom("room", "ip", "link", "add", "cable", "type", "veth", "peer", "name", "end")
	s.InRoom("room", "ip", "address", "add", "198.18.0.1/24", "dev", "cable")
	s.InRoom("room", "ip", "link", "set", "cable", "up")
	says(s, s.Expect(4, "up"), "interfaces: asked lo, found cable lo (B20)")
	s.InRoom("room", "ip", "link", "del", "cable")
	s.Up()
	s.Run("exec", "--quiet", "worker", "--", "kill", "-STOP", "1")
	if d := s.Expect(0, "down"); d.Counted > 30*time.Second {
		t.Errorf("down took %v", d.Took)
	}
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}
