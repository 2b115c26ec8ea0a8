// Command inside measures from where it runs, and prints the nanoseconds of each time:
//
//	inside get NAME COUNT     of a name's lookup, and of a GET on a new connection up to the first byte of its answer
//	inside run PROGRAM COUNT  of fork + exec, up to the end of the program
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}

func run(what, of, count string) error {
	n, err := strconv.Atoi(count)
	for range n {
		start := time.Now()
		switch what {
		case "get":
			err = get(of)
		case "run":
			err = exec.Command(of).Run()
			fmt.Println(time.Since(start).Nanoseconds())
		}
		if err != nil {
			return err
		}
	}
	return err
}

func get(name string) error {
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
	defer c.Close()
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
	return nil
}
