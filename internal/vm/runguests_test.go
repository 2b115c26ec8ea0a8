//go:build linux && amd64

package vm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/carrier/relay"
	"github.com/llmdo/workshop/internal/made"
	internalroom "github.com/llmdo/workshop/internal/room"
	"github.com/llmdo/workshop/internal/vm/guest"
)

// A guest of these kinds is PID 1 of a machine whose monitor runs in a worker's container.
const (
	carriesGuest = "carries" // as ours: it dials, echoes sessions and uses its shares
	floodsGuest  = "floods"  // with lines
	forgesGuest  = "forges"  // what the container is
	answersGuest = "answers" // sessions, in hostile ways
	endsGuest    = "ends"    // after it has said why
	busyGuest    = "busy"    // with its disk, files and connections at once
)

func init() {
	if os.Getpid() != 1 {
		return
	}
	switch kind := kindOf(); kind {
	case carriesGuest, floodsGuest, forgesGuest, answersGuest, endsGuest, busyGuest:
		port, err := guest.Prepare(os.Stderr)
		if err != nil {
			fmt.Println(err)
		}
		useMonitor(kind, port)
		time.Sleep(time.Hour)
	}
}

func line(s carrier.Stream, text string) carrier.Head {
	return carrier.Head{Kind: carrier.Output, Stream: s, Line: text}
}

func useMonitor(kind string, port *os.File) {
	sessions := make(chan *mux.Stream)
	if err := internalroom.LocalAddresses(); err != nil {
		fmt.Println(err)
	}
	r, err := relay.New(relay.Options{
		Ready: true, Ports: relay.Ports, Session: func(s *mux.Stream) { sessions <- s; <-s.Gone() },
		Dial: func(context.Context) (io.ReadWriteCloser, error) { return port, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(h carrier.Head) {
		if err := r.Send(h); err != nil {
			fmt.Println(err)
		}
	}
	ready := func() { send(line(carrier.Stdout, "READY")) }
	forged := line(carrier.Stdout, made.Prefix+"mountinfo=forged")
	switch kind {
	case forgesGuest:
		send(forged)
		send(line(carrier.Stderr, forged.Line))
		send(line(carrier.Stdout, " "+forged.Line))
		ready()
	case floodsGuest:
		ready()
		go echo(sessions)
		for i := 0; ; i++ {
			send(line(carrier.Stdout, fmt.Sprintf("%-*d", carrier.MaxLine, i)))
		}
	case endsGuest:
		send(line(carrier.Stdout, "NOTE of the guest"))
		send(line(carrier.Stdout, "FAILED the guest says why"))
		time.Sleep(time.Second) // it is on its way
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	case carriesGuest:
		if err := useShares(); err != nil {
			send(line(carrier.Stdout, "FAILED "+err.Error()))
			return
		}
		go useNetwork()
		ready()
		echo(sessions)
	case busyGuest:
		if err := useShares(); err != nil {
			send(line(carrier.Stdout, "FAILED "+err.Error()))
			return
		}
		for i := range 64 {
			go again(func() error { return readDisk(i) })
			go again(func() error {
				return errors.Join(os.WriteFile(fmt.Sprintf("/tmp/rw/0/%d", i), large, 0o644), unix.Unlink(fmt.Sprintf("/tmp/rw/0/%d", i)))
			})
			go again(func() error { try("tcp4", fmt.Sprintf("198.51.100.%d:80", i+1), "GET /large"); return nil })
		}
		ready()
		echo(sessions)
	case answersGuest:
		ready()
		next := func(how string) *mux.Stream {
			s := <-sessions
			send(line(carrier.Stdout, "NOTE "+how))
			return s
		}
		next("silent") // it never reads, nor answers
		_ = next("reset").Reset()
		_ = next("ended").CloseWrite()
		s := next("endless")
		go func() {
			for {
				if _, err := s.Write(make([]byte, mux.MaxData)); err != nil {
					return
				}
			}
		}()
		echo(sessions)
	}
}

func echo(sessions <-chan *mux.Stream) {
	for s := range sessions {
		go func() { _, _ = io.Copy(s, s); _ = s.CloseWrite() }()
	}
}

// again does something for a while.
func again(f func() error) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if err := f(); err != nil {
			fmt.Println(err)
			time.Sleep(time.Second)
		}
	}
}

// readDisk reads the root's disk, past the guest's cache.
func readDisk(part int) error {
	fd, err := unix.Open("/dev/vda", unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	page, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(page)
	for i := range diskSize / 64 / len(page) {
		if _, err := unix.Pread(fd, page, int64(part*diskSize/64+i*len(page))); err != nil {
			return err
		}
	}
	return nil
}

// diskSize is that of a root, in bytes.
const diskSize = 64 << 20

// useShares writes a file of the writable share and fails to write one of the other.
func useShares() error {
	for _, tag := range []string{"rw", "ro"} {
		if err := os.Mkdir("/tmp/"+tag, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(tag, "/tmp/"+tag, "virtiofs", 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", tag, err)
		}
	}
	if err := os.WriteFile("/tmp/rw/0/made", []byte("by the guest"), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile("/tmp/ro/0/made", nil, 0o644); err == nil {
		return fmt.Errorf("the read-only share can be written to")
	}
	return nil
}
