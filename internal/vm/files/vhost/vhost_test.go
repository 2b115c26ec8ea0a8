package vhost_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/vhosttest"
	"github.com/llmdo/workshop/internal/vm/files/vhost"
)

const size = 64 << 10

// upper answers a request with itself, in capital letters.
func upper(in, out []byte) (int, error) { return copy(out, bytes.ToUpper(in)), nil }

// device serves until the test ends, and returns how it ended.
func device(t testing.TB, handler vhost.Handler) (*vhosttest.Driver, func() error) {
	t.Helper()
	there, here := vhosttest.Pair(t)
	ended := make(chan error, 1)
	go func() { ended <- vhost.Serve(here, vhost.NewBuffers(2, size), handler) }()
	d := vhosttest.New(t, there)
	end := sync.OnceValue(func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("the device didn't end")
		}
	})
	t.Cleanup(func() {
		there.Close()
		end()
	})
	return d, end
}

func TestRequests(t *testing.T) {
	d, end := device(t, upper)
	d.Start(1)
	for i := range 300 { // more than the ring has
		text := strings.Repeat("a word ", 1+i)
		got, err := d.Do([]byte(text), 4096)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ToUpper(text); string(got) != want {
			t.Fatalf("request %d: %d bytes, want %d", i, len(got), len(want))
		}
	}
	if got, err := d.Do([]byte("long"), 2); string(got) != "LO" || err != nil {
		t.Errorf("with room for 2 bytes: %q, %v", got, err)
	}
	if got, err := d.Do([]byte("none"), 0); len(got) != 0 || err != nil {
		t.Errorf("without room: %q, %v", got, err)
	}
	d.Conn.Close()
	if err := end(); err != nil {
		t.Errorf("the device ended with %v", err)
	}
}

func TestIndirect(t *testing.T) {
	d, _ := device(t, upper)
	d.Start(1)
	const table, data = vhosttest.DataAt, vhosttest.DataAt + 0x1000
	copy(d.Mem[data:], "indirect")
	vhosttest.PutDesc(d.Mem[table:], vhosttest.Guest+data, 8, vhosttest.Next, 1)
	vhosttest.PutDesc(d.Mem[table+16:], vhosttest.Guest+data+16, 100, vhosttest.Write, 0)
	d.Desc(5, vhosttest.Guest+table, 32, vhosttest.Indirect, 0)
	d.Avail(5)
	for end := time.Now().Add(10 * time.Second); d.Used() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := string(d.Mem[data+16:][:8]); got != "INDIRECT" {
		t.Errorf("got %q", got)
	}
}

// TestStopped: a queue that the hypervisor stops says where it was, and goes on from there.
func TestStopped(t *testing.T) {
	d, _ := device(t, upper)
	d.Start(1)
	for range 3 {
		if _, err := d.Do([]byte("x"), 10); err != nil {
			t.Fatal(err)
		}
	}
	d.Send(vhosttest.GetVringBase, vhosttest.U64(1))
	answer := make([]byte, 20)
	d.Conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(d.Conn, answer); err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint64(answer[12:]); got != 1|3<<32 {
		t.Errorf("the base is %#x, want queue 1 at 3", got)
	}
	d.Start(1)
	// A driver that starts anew has an empty ring.
	if got, err := d.Do([]byte("y"), 10); err == nil && string(got) != "Y" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestSlowRequest: one that takes long doesn't hold up others.
func TestSlowRequest(t *testing.T) {
	release := make(chan struct{})
	d, _ := device(t, func(in, out []byte) (int, error) {
		if in[0] == 's' {
			<-release
		}
		return upper(in, out)
	})
	d.Start(1)
	copy(d.Mem[vhosttest.DataAt+0x8000:], "slow")
	d.Desc(10, vhosttest.Guest+vhosttest.DataAt+0x8000, 4, 0, 0)
	d.Avail(10)
	if got, err := d.Do([]byte("quick"), 10); string(got) != "QUICK" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	close(release)
}

// TestBrokenRules: each breach ends the session with an error, and nothing else.
func TestBrokenRules(t *testing.T) {
	const guest, data = vhosttest.Guest, vhosttest.Guest + vhosttest.DataAt
	started := func(do func(d *vhosttest.Driver)) func(d *vhosttest.Driver) {
		return func(d *vhosttest.Driver) { d.Start(1); do(d) }
	}
	message := func(request uint32, payload ...uint64) func(d *vhosttest.Driver) {
		return func(d *vhosttest.Driver) { d.Send(request, vhosttest.U64(payload...)) }
	}
	for _, tt := range []struct {
		name string
		do   func(d *vhosttest.Driver)
		want string
	}{
		{"more requests than descriptors", started(func(d *vhosttest.Driver) { d.Index(vhosttest.Ring + 1) }), "65 requests are available"},
		{"an index that went back", started(func(d *vhosttest.Driver) { d.Index(0xffff) }), "65535 requests are available"},
		{"a head that isn't there", started(func(d *vhosttest.Driver) { d.Avail(vhosttest.Ring) }), "descriptor 64 of 64"},
		{"a next that isn't there", started(func(d *vhosttest.Driver) {
			d.Desc(0, data, 8, vhosttest.Next, 0xffff)
			d.Avail(0)
		}), "descriptor 65535 of 64"},
		{"a chain that loops", started(func(d *vhosttest.Driver) {
			d.Desc(0, data, 8, vhosttest.Next, 1)
			d.Desc(1, data, 8, vhosttest.Next, 0)
			d.Avail(0)
		}), "doesn't end"},
		{"an address before the memory", started(func(d *vhosttest.Driver) { d.Desc(0, guest-1, 8, 0, 0); d.Avail(0) }), "not in the guest's memory"},
		{"an address behind it", started(func(d *vhosttest.Driver) { d.Desc(0, guest+vhosttest.Memory, 8, 0, 0); d.Avail(0) }), "not in the guest's memory"},
		{"a buffer that crosses its end", started(func(d *vhosttest.Driver) { d.Desc(0, guest+vhosttest.Memory-4, 8, 0, 0); d.Avail(0) }), "not in the guest's memory"},
		{"a buffer that wraps around", started(func(d *vhosttest.Driver) { d.Desc(0, ^uint64(0)-3, 8, 0, 0); d.Avail(0) }), "not in the guest's memory"},
		{"a buffer of 4 GiB", started(func(d *vhosttest.Driver) { d.Desc(0, data, ^uint32(0), vhosttest.Write, 0); d.Avail(0) }), "not in the guest's memory"},
		{"a request larger than any", started(func(d *vhosttest.Driver) { d.Desc(0, data, size+1, 0, 0); d.Avail(0) }), "want at most 65536"},
		{"to read behind to write", started(func(d *vhosttest.Driver) {
			d.Desc(0, data, 8, vhosttest.Write|vhosttest.Next, 1)
			d.Desc(1, data, 8, 0, 0)
			d.Avail(0)
		}), "follows one to write"},
		{"an indirect table in an indirect one", started(func(d *vhosttest.Driver) {
			vhosttest.PutDesc(d.Mem[vhosttest.DataAt:], data, 16, vhosttest.Indirect, 0)
			d.Desc(0, data, 16, vhosttest.Indirect, 0)
			d.Avail(0)
		}), "indirect table"},
		{"an indirect table that loops", started(func(d *vhosttest.Driver) {
			vhosttest.PutDesc(d.Mem[vhosttest.DataAt:], data, 8, vhosttest.Next, 0)
			d.Desc(0, data, 16, vhosttest.Indirect, 0)
			d.Avail(0)
		}), "doesn't end"},
		{"an empty indirect table", started(func(d *vhosttest.Driver) { d.Desc(0, data, 0, vhosttest.Indirect, 0); d.Avail(0) }), "indirect table"},
		{"an indirect table of half a descriptor", started(func(d *vhosttest.Driver) { d.Desc(0, data, 24, vhosttest.Indirect, 0); d.Avail(0) }), "indirect table"},
		{"an indirect table of more than any has", started(func(d *vhosttest.Driver) { d.Desc(0, data, 1025*16, vhosttest.Indirect, 0); d.Avail(0) }), "indirect table"},
		{"an indirect table outside", started(func(d *vhosttest.Driver) { d.Desc(0, 1, 16, vhosttest.Indirect, 0); d.Avail(0) }), "not in the guest's memory"},

		{"a legacy driver", message(vhosttest.SetFeatures, 0), "force-legacy"},
		{"features that weren't offered", message(vhosttest.SetFeatures, vhosttest.Version1|1), "features 0x1"},
		{"an unknown message", message(99), "message 99"},
		{"a message of 4 GiB", func(d *vhosttest.Driver) {
			d.Raw(bytes.Repeat([]byte{1, 0, 0, 0}, 2))
			d.Raw([]byte{255, 255, 255, 255})
		}, "bytes"},
		{"another version", func(d *vhosttest.Driver) { d.Raw([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}) }, "flags 0x2"},
		{"a queue that isn't there", message(vhosttest.SetVringNum, 2|8<<32), "queue 2"},
		{"a queue that isn't there, of a kick", func(d *vhosttest.Driver) { d.Send(vhosttest.SetVringKick, vhosttest.U64(2), d.FD) }, "queue 0x2"},
		{"a kick without a descriptor", message(vhosttest.SetVringKick, 1|1<<8), "0 descriptors"},
		{"a descriptor for nothing", func(d *vhosttest.Driver) { d.Send(vhosttest.SetFeatures, vhosttest.U64(vhosttest.Version1), d.FD) }, "1 descriptors"},
		{"a queue of 3", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, guest, vhosttest.Memory, vhosttest.User, 0), d.FD)
			d.Send(vhosttest.SetVringNum, vhosttest.U64(1|3<<32))
			d.Send(vhosttest.SetVringAddr, vhosttest.U64(1, vhosttest.User, vhosttest.User, vhosttest.User, 0))
		}, "power of two"},
		{"a queue of none", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, guest, vhosttest.Memory, vhosttest.User, 0), d.FD)
			d.Send(vhosttest.SetVringAddr, vhosttest.U64(1, vhosttest.User, vhosttest.User, vhosttest.User, 0))
		}, "power of two"},
		{"a ring outside the memory", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, guest, vhosttest.Memory, vhosttest.User, 0), d.FD)
			d.Send(vhosttest.SetVringNum, vhosttest.U64(1|8<<32))
			d.Send(vhosttest.SetVringAddr, vhosttest.U64(1, vhosttest.User+vhosttest.Memory-64, vhosttest.User, vhosttest.User, 0))
		}, "not in the guest's memory"},
		{"a ring that isn't aligned", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, guest, vhosttest.Memory, vhosttest.User, 0), d.FD)
			d.Send(vhosttest.SetVringNum, vhosttest.U64(1|8<<32))
			d.Send(vhosttest.SetVringAddr, vhosttest.U64(1, vhosttest.User+8, vhosttest.User, vhosttest.User, 0))
		}, "aligned"},
		{"a queue that is changed while it runs", started(func(d *vhosttest.Driver) { d.Send(vhosttest.SetVringNum, vhosttest.U64(1|8<<32)) }), "is running"},
		{"memory that wraps around", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, ^uint64(0), vhosttest.Memory, vhosttest.User, 0), d.FD)
		}, "wraps around"},
		{"memory behind the end of its file", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(1, guest, vhosttest.Memory+4096, vhosttest.User, 0), d.FD)
		}, "its memfd at"},
		{"more regions than descriptors", func(d *vhosttest.Driver) {
			d.Send(vhosttest.SetMemTable, vhosttest.U64(2, guest, vhosttest.Memory, vhosttest.User, 0), d.FD)
		}, "2 regions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, end := device(t, upper)
			tt.do(d)
			if err := end(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the device ended with %v, want %q", err, tt.want)
			}
		})
	}
}

// TestMemoryThatMayShrink: a file that could become shorter would end the process.
func TestMemoryThatMayShrink(t *testing.T) {
	d, end := device(t, upper)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		err = f.Truncate(vhosttest.Memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d.Send(vhosttest.SetMemTable, vhosttest.U64(1, vhosttest.Guest, vhosttest.Memory, vhosttest.User, 0), int(f.Fd()))
	if err := end(); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("the device ended with %v", err)
	}
}

// TestHandlersError ends the session, as does a panic.
func TestHandlersError(t *testing.T) {
	for name, h := range map[string]vhost.Handler{
		"error": func(in, out []byte) (int, error) { return 0, errors.New("broken") },
		"panic": func(in, out []byte) (int, error) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			d, end := device(t, h)
			d.Start(0)
			d.Desc(0, vhosttest.Guest, 8, 0, 0)
			d.Avail(0)
			if err := end(); err == nil || !strings.Contains(err.Error(), "broken") {
				t.Errorf("the device ended with %v", err)
			}
		})
	}
}

// TestDescriptorsClosed: a session leaves no descriptor behind, also if it was refused.
func TestDescriptorsClosed(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	session := func(do func(d *vhosttest.Driver)) {
		there, here := vhosttest.Pair(t)
		ended := make(chan error)
		go func() { ended <- vhost.Serve(here, vhost.NewBuffers(2, size), upper) }()
		d := vhosttest.New(t, there)
		before := count()
		do(d)
		there.Close()
		<-ended
		if after := count(); after > before-2 {
			t.Errorf("%d descriptors, with both ends of a socket %d", after, before)
		}
	}
	session(func(d *vhosttest.Driver) { d.Start(1) })
	session(func(d *vhosttest.Driver) { d.Send(99, nil, d.FD, d.FD, d.FD) })
	session(func(d *vhosttest.Driver) { d.Send(vhosttest.SetMemTable, vhosttest.U64(3, 1), d.FD, d.FD) })
	session(func(d *vhosttest.Driver) { d.Raw([]byte{1}, d.FD, d.FD) })
}

// FuzzMessages: no bytes on the socket do more than end the session.
func FuzzMessages(f *testing.F) {
	f.Add(vhosttest.U64(1|1<<32, 0))
	f.Add(append([]byte{2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0}, vhosttest.U64(vhosttest.Version1)...))
	f.Add(append([]byte{9, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0}, vhosttest.U64(1, 1, 2, 3, 4)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		there, here := vhosttest.Pair(t)
		ended := make(chan error, 1)
		go func() { ended <- vhost.Serve(here, vhost.NewBuffers(1, 4096), upper) }()
		fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		var oob []byte
		if len(b) > 0 && b[0]%3 > 0 {
			oob = unix.UnixRights(fd)
		}
		there.WriteMsgUnix(b, oob, nil)
		there.CloseWrite()
		io.Copy(io.Discard, there)
		there.Close()
		<-ended
	})
}
