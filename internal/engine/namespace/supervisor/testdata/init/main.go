// Init is what of workshop-init a supervisor needs, for tests, and a guard that
// only answers.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor"
)

func main() {
	switch os.Args[1] {
	case "supervise":
		os.Exit(supervisor.Main(os.Args[2:], os.Stdout, os.Stderr))
	case "contain":
		os.Exit(container.Main(os.Args[2:], os.Stdout, os.Stderr))
	case "guard":
		guard(os.Args[2:])
	case "descriptors":
		entries, err := os.ReadDir("/proc/self/fd")
		n := 0
		for _, e := range entries {
			// Less the directory, and what the runtime has for itself.
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
				n++
			}
		}
		fmt.Println(n, err)
	case "borrow": // keeps what it is handed
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: os.Args[2], Net: "unix"})
		fmt.Println("READY", err)
		fmt.Println("READY")
		c, err := l.AcceptUnix()
		if err == nil {
			oob := make([]byte, unix.CmsgSpace(8))
			_, n, _, _, _ := c.ReadMsgUnix(make([]byte, 1), oob)
			messages, _ := unix.ParseSocketControlMessage(oob[:n])
			fds, _ := unix.ParseUnixRights(&messages[0])
			for {
				if _, err := unix.Write(fds[0], []byte("borrowed\n")); err != nil {
					fmt.Println("then", err)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	case "lend": // hands its outputs to another container, and ends
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Args[2], Net: "unix"})
		if err == nil {
			_, _, err = c.WriteMsgUnix([]byte("x"), unix.UnixRights(1, 2), nil)
		}
		fmt.Println("lent", err)
		os.Exit(0)
	case "serve":
		l, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			fmt.Println("FAILED", err)
			break
		}
		fmt.Println("READY")
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			fmt.Fprintln(c, "served")
			c.Close()
		}
	case "connect":
		c, err := net.Dial("unix", os.Args[2])
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Fprintln(c, `{"op":"hello"}`)
		b, err := io.ReadAll(c)
		fmt.Printf("%q, ended %v\n", b, err)
	}
	os.Exit(2)
}

// guard says what it is at each of its ports and each control connection.
func guard(args []string) {
	who := fmt.Sprint(time.Now().UnixNano())
	answer := func(c net.Conn, what string) {
		fmt.Fprintln(c, what, who)
		c.Close()
	}
	for i := 0; i+1 < len(args); i += 2 {
		var target, fd int
		if args[i] == "--control-fd" {
			fmt.Sscan(args[i+1], &fd)
			go control(fd, answer)
			continue
		}
		fmt.Sscanf(strings.Replace(args[i+1], "=", " ", 1), "%d %d", &target, &fd)
		l, err := net.FileListener(os.NewFile(uintptr(fd), "port"))
		if err != nil {
			fmt.Println("FAILED", err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				answer(c, fmt.Sprint("port ", target))
			}
		}()
	}
	if os.Getenv("SLOW") != "" {
		time.Sleep(time.Second)
	}
	fmt.Println("READY")
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	<-ends
	os.Exit(0)
}

func control(fd int, answer func(net.Conn, string)) {
	for {
		data, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
		if err != nil || n == 0 {
			fmt.Println("FAILED", n, err)
			return
		}
		messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
		fds, _ := unix.ParseUnixRights(&messages[0])
		f := os.NewFile(uintptr(fds[0]), "control")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			fmt.Println("FAILED", err)
			return
		}
		answer(c, "control")
	}
}
