// Command syscalls makes the calls that it is asked for, "NAME:ARG", and
// prints "NAME:ARG ERRNO" for each: what a seccomp profile answers.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

var numbers = map[string]uintptr{"socket": syscall.SYS_SOCKET, "clone3": 435, "unshare": syscall.SYS_UNSHARE, "keyctl": syscall.SYS_KEYCTL}

func main() {
	for _, call := range os.Args[1:] {
		name, arg, _ := strings.Cut(call, ":")
		n, err := strconv.ParseUint(arg, 0, 64)
		if err != nil {
			panic(err)
		}
		kind := uintptr(syscall.SOCK_STREAM)
		if n&0xffffffff == syscall.AF_NETLINK || n&0xffffffff == syscall.AF_PACKET {
			kind = syscall.SOCK_RAW
		}
		if n&0xffffffff == 38 { // AF_ALG
			kind = syscall.SOCK_SEQPACKET
		}
		_, _, errno := syscall.RawSyscall(numbers[name], uintptr(n), kind, 0)
		fmt.Println(call, int(errno))
	}
	// Threads, for which Go and C libraries call clone.
	done := make(chan bool)
	for range 8 {
		go func() { done <- true }()
	}
	for range 8 {
		<-done
	}
	fmt.Println("threads 0")
}
