// Command fakeinit stands in for workshop-init where only the engine is
// tested: it says READY, idles and ends on SIGTERM.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/execmark"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	switch os.Args[1] {
	case "room":
		idle("")
	case "guard":
		b, err := os.ReadFile("/etc/workshop/policy.json")
		p, bad := firewall.ParsePolicy(b)
		if err := errors.Join(err, bad); err != nil {
			fmt.Println("FAILED " + err.Error())
			os.Exit(1)
		}
		// As the guard does, which `up` compares.
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		g := &fakeGuard{policy: p}
		go func() { fmt.Fprintln(os.Stderr, g.serve()) }()
		idle("")
	case "connect":
		if err := connect(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "gate":
		if os.Getenv("FAKE_FAIL") != "" {
			fmt.Println("FAILED " + os.Getenv("FAKE_FAIL"))
			os.Exit(1)
		}
		if os.Getenv("FAKE_END") != "" {
			fmt.Fprintln(os.Stderr, "last words")
			os.Exit(3)
		}
		if os.Getenv("FAKE_SILENT") != "" {
			time.Sleep(time.Hour)
		}
		idle("hello from " + os.Getenv("NAME"))
	case "health":
		return
	case "signal":
		os.Exit(execmark.Main(os.Args[2:], os.Stdout, os.Stderr))
	case "enter":
		os.Exit(toolbox.EnterMain(os.Args[2:], os.Stdout, os.Stderr))
	case "tools":
		if os.Getenv("FAKE_OLD") != "" {
			fmt.Fprint(os.Stderr, "workshop-init: error: unknown command \"tools\"\nusage: workshop-init …\n")
			os.Exit(2)
		}
		fmt.Print("\x00session ")
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "the input has ended")
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "say":
		fmt.Println(strings.Join(os.Args[2:], " "))
		fmt.Fprintln(os.Stderr, "to stderr")
	case "read":
		b, err := os.ReadFile(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = os.Stdout.Write(b)
	case "exit":
		n, _ := strconv.Atoi(os.Args[2])
		os.Exit(n)
	case "trap":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
		fmt.Println("trapping")
		select {
		case s := <-c:
			fmt.Println("got", s)
			os.Exit(7)
		case <-time.After(30 * time.Second):
		}
	}
}

func idle(more string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	fmt.Print(made.Line(made.Mountinfo()))
	fmt.Println("READY")
	if more != "" {
		fmt.Println(more)
	}
	<-c
}
