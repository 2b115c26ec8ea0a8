// Command testnet runs the test internet for scripts: it joins one to the
// network namespace that it is started in, prints READY and a line of JSON, and
// runs until its standard input ends or it gets SIGINT or SIGTERM.
//
// It needs root, or a privileged container with the host's network. However it
// ends, nothing of it remains.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// ready is the line that follows READY.
type ready struct {
	CA      string            `json:"ca"`      // file with the CA's certificate, PEM
	Control string            `json:"control"` // unix socket, HTTP: GET /counts, POST /reset, POST /answer?name=
	IPv6    bool              `json:"ipv6"`
	DNS     string            `json:"dns"`
	DNS2    string            `json:"dns2"`
	Names   map[string]string `json:"names"` // name → address
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("testnet", flag.ContinueOnError)
	fs.SetOutput(stderr)
	dir := fs.String("dir", "", "directory for ca.pem and control.sock (default: a temporary one, removed at the end)")
	wait := fs.Duration("wait", time.Minute, "how long to wait for another test internet to end")
	detach := fs.Bool("signal-only", false, "don't end when standard input ends")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if err := serve(*dir, *wait, *detach, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "testnet: error:", err)
		return 1
	}
	return 0
}

func serve(dir string, wait time.Duration, detach bool, stdin io.Reader, stdout io.Writer) error {
	if dir == "" {
		tmp, err := os.MkdirTemp("", "workshop-testnet-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if err := os.Chmod(tmp, 0o755); err != nil {
			return err
		}
		dir = tmp
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r := ready{
		CA: filepath.Join(dir, "ca.pem"), Control: filepath.Join(dir, "control.sock"),
		DNS: testnet.DNS, DNS2: testnet.DNS2,
		Names: map[string]string{
			"allowed.example.org": testnet.Allowed, "denied.example.org": testnet.Denied,
			"evil.example.net": testnet.Evil, "ssh.example.org": testnet.SSH,
		},
	}
	in, err := testnet.Start(ctx, testnet.Options{Control: r.Control})
	if err != nil {
		return err
	}
	defer in.Close()
	r.IPv6 = in.IPv6
	if err := os.WriteFile(r.CA, in.CA, 0o644); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "READY\n%s\n", line)
	stop, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer end()
	if !detach {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			end()
		}()
	}
	<-stop.Done()
	return nil
}
