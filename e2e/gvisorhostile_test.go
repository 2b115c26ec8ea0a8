//go:build linux

package e2e

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// hostileRelay takes the place of the relay, which it stops, once the outlet is another one,
// and prints what comes of what it tries (package carrier has the frames).
const hostileRelay = `
import array, os, signal, socket, struct, sys, time

def relay():
    end = time.time() + 60
    while time.time() < end:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect('/run/outlet/outlet.sock')
            s.settimeout(0.3)
            if s.recv(4096):
                return s
        except TimeoutError:
            return s
        except OSError:
            pass
        s.close()
    sys.exit('no connection')

def frame(kind, stream, payload=b''):
    return struct.pack('>BIH', kind, stream, len(payload)) + payload

def tcp(stream, address, port):
    return frame(1, stream, b'\x01' + socket.inet_aton(address) + struct.pack('>H', port))

def received(s, wait=2):
    all, s2 = b'', time.time() + wait
    while time.time() < s2:
        s.settimeout(max(0.01, s2 - time.time()))
        try:
            b, passed, _, _ = s.recvmsg(65536, 1024)
            if passed:
                print('a descriptor came', passed)
        except TimeoutError:
            break
        except OSError:
            return all, 'ended'
        if not b:
            return all, 'ended'
        all += b
    return all, 'open'

first = socket.socket(socket.AF_UNIX)
first.connect('/run/outlet/outlet.sock')
print('second relay:', received(first)[1], flush=True)
os.kill(1, signal.SIGSTOP)
print('waits', flush=True)
s = relay()
try:
    s.sendmsg([frame(4, 1)[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [os.open('/proc/version', os.O_RDONLY)]))])
    print('descriptor: sent')
except OSError as e:
    print('descriptor:', e.errno)
s.close()
s = relay()
for i, to in enumerate([('127.0.0.1', 534), ('127.0.0.1', 80), ('0.0.0.0', 53), ('198.51.100.66', 9000), ('198.51.100.66', 22)]):
    s.sendall(tcp(2 * i + 1, *to))
b, state = received(s)
print('claims:', state, sum(b.count(frame(4, 2 * i + 1)) for i in range(5)), 'resets')
for name, frames in [
    ('many streams', b''.join(tcp(2 * i + 1, '198.51.100.10', 443) for i in range(2000))),
    ('wrong way', frame(6, 0, b'\x07')),
    ('inbound', frame(1, 1, b'\x05\x1f\x90')),
    ('beyond credit', tcp(1, '198.51.100.10', 443) + b''.join(frame(2, 1, bytes(16384)) for _ in range(1000))),
    ('long head', struct.pack('>BIH', 1, 1, 65535) + bytes(65535)),
    ('half a frame', b'\x01\x00'),
]:
    s.close()
    s = relay()
    try:
        s.sendall(frames)
    except OSError:
        pass
    if name == 'half a frame':
        print(name + ':', received(s, 1)[1])
    else:
        print(name + ':', received(s, 5)[1])
s.close()
os.kill(1, signal.SIGCONT)
`

// TestGVisorHostileRelay: a worker that plays the relay reaches what any worker reaches, is
// disconnected for what isn't the protocol, and costs nobody else anything (B20, B22, B60).
func TestGVisorHostileRelay(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a worker on gVisor that plays the relay gains nothing, and guard, room and outlet go on")
	if s == nil {
		return
	}
	before := lives(s)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	attack := s.Command(ctx, "exec", "worker", "--", "python3", "-c", hostileRelay)
	said, err := attack.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	attack.Stderr = os.Stderr
	s.Internet.Reset()
	if err := attack.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if lines.Text() == "waits" {
			s.Crash("outlet")
		}
	}
	if err := attack.Wait(); err != nil {
		t.Errorf("the relay: %v", err)
	}
	const want = `second relay: ended
waits
descriptor: 22
claims: open 5 resets
many streams: ended
wrong way: ended
inbound: ended
beyond credit: ended
long head: ended
half a frame: open
`
	if out.String() != want {
		t.Errorf("it saw\n%swant\n%s", out.String(), want)
	}
	silent(s, testnet.Evil)
	s.Eventually("the network works again", func() bool {
		return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
	})
	now := lives(s)
	for _, service := range []string{"guard", "room", "worker"} {
		if now[service] != before[service] {
			t.Errorf("%s is %s, was %s", service, now[service], before[service])
		}
	}
	if logs := s.Logs("outlet"); strings.Count(logs, "outlet: the relay is disconnected: the peer broke the protocol") != 5 {
		t.Errorf("the outlet said\n%s", logs)
	}
}

// manyConnections opens as many connections as a carrier has, and one more.
const manyConnections = `
import socket, sys
to = (socket.gethostbyname('ssh.example.org'), 22)
def greeted(c, wait):
    c.settimeout(wait)
    try:
        return bool(c.recv(1))
    except TimeoutError:
        return False
all = []
for i in range(1024):
    c = socket.create_connection(to, 20)
    if not greeted(c, 20):
        sys.exit('connection %d is not carried' % i)
    all.append(c)
more = socket.create_connection(to, 20)
print('one more:', greeted(more, 1))
all.pop().close()
print('after one ended:', greeted(more, 20))
`

// TestGVisorManyConnections: with all its streams taken, what a worker connects to waits
// (B60), and neither the worker nor the outlet ends.
func TestGVisorManyConnections(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a worker on gVisor has 1,024 connections at a time, and one more waits")
	if s == nil {
		return
	}
	before := lives(s)
	if got, want := s.Expect(0, "exec", "worker", "--", "python3", "-c", manyConnections).Out, "one more: False\nafter one ended: True\n"; got != want {
		t.Errorf("it saw\n%swant\n%s", got, want)
	}
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	if now := lives(s); now["worker"] != before["worker"] || now["outlet"] != before["outlet"] {
		t.Errorf("%v, before %v", now, before)
	}
}
