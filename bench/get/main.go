// Command get measures, from where it runs, a name's lookup and an HTTP GET on a new
// connection, which ends with the first byte of the answer: get NAME COUNT. It prints the
// nanoseconds of both, one line each time.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "get:", err)
		os.Exit(1)
	}
}

func run(name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for range n {
		start := time.Now()
		found, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", name)
		if err != nil {
			return err
		}
		lookup := time.Since(start)
		start = time.Now()
		c, err := net.DialTimeout("tcp", net.JoinHostPort(found[0].Unmap().String(), "80"), 10*time.Second)
		if err != nil {
			return err
		}
		if err := c.SetDeadline(start.Add(10 * time.Second)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		fmt.Println(lookup.Nanoseconds(), time.Since(start).Nanoseconds())
		c.Close()
	}
	return nil
}
