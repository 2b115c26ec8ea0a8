package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// hostile adds what a server that was taken over would try: POST /test/VERB?of=…. Each
// answers `ok`, or why not in the words of the kernel.
func hostile(mux *http.ServeMux) {
	for verb, try := range map[string]func(of string) error{
		"listen":  listen,
		"connect": connect,
		"send":    send,
		"write":   func(of string) error { return os.WriteFile(of, []byte("x"), 0o600) },
		"setuid":  func(string) error { return syscall.Setuid(0) },
		"run":     func(of string) error { return exec.Command(of).Run() },
	} {
		mux.HandleFunc("POST /test/"+verb, func(w http.ResponseWriter, r *http.Request) {
			result := "ok"
			if err := try(r.URL.Query().Get("of")); err != nil {
				result = err.Error()
			}
			answer(w, 200, map[string]any{"result": result})
		})
	}
}

// listen opens one more port, for good, and answers `second` to who connects.
func listen(of string) error {
	l, err := net.Listen("tcp", of)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("second\n"))
			_ = c.Close()
		}
	}()
	return nil
}

func connect(of string) error {
	c, err := net.DialTimeout("tcp", of, time.Second)
	if err == nil {
		err = c.Close()
	}
	return err
}

// send sends a datagram; that it leaves isn't seen here.
func send(of string) error {
	c, err := net.Dial("udp", of)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}
