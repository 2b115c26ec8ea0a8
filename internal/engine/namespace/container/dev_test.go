//go:build linux

package container

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	insides["devices"] = func([]string) {
		b := make([]byte, 16)
		for _, name := range []string{"null", "zero", "urandom", "random", "full"} {
			f, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0)
			if err != nil {
				fmt.Println(name, err)
				continue
			}
			n, err := f.Read(b)
			fmt.Print(name, " read ", n, " ", err == nil || err == io.EOF)
			_, err = f.Write(b)
			fmt.Print(" write ")
			report(err)
			f.Close()
		}
		link, err := os.Readlink("/dev/stdout")
		fmt.Println(link, err)
	}
	insides["terminal"] = func([]string) {
		master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		report(err)
		report(unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
		report(err)
		slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
		report(err)
		_, err = unix.Write(slave, []byte("hello"))
		report(err)
		b := make([]byte, 16)
		got, err := unix.Read(master, b)
		fmt.Printf("%q\n", b[:max(got, 0)])
		report(err)
		report(unix.Fchmod(slave, 0o600))
	}
}

// What every program needs works behind all fences.
func TestDevices(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		got := run(t, mode, job{Spec: container(mode, "devices")})
		want := "null read 0 true write done\nzero read 16 true write done\nurandom read 16 true write done\nrandom read 16 true write done\nfull read 16 true write refused ENOSPC\n/proc/self/fd/1 <nil>\n"
		if got.Err != "" || got.Out != want {
			t.Errorf("%+v; want %q", got, want)
		}
		got = run(t, mode, job{Spec: container(mode, "terminal")})
		if want := "done\ndone\ndone\ndone\ndone\n\"hello\"\ndone\ndone\n"; got.Err != "" || got.Out != want {
			t.Errorf("%+v; want %q", got, want)
		}
	})
}
