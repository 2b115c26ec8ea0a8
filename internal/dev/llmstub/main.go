// Command llmstub stands for llama.cpp's llama-server in tests: the same flags, paths and
// refusals, as far as we use them, and words that it makes up. Tests build it with
// CGO_ENABLED=0 (testutil.LLMStub), so that it runs in an image without a file beside it. What a server that
// was taken over would try, it does on request (hostile.go).
//
// llama-server's own: tools/server/server-http.cpp and common/arg.cpp of ggml-org/llama.cpp.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// server is what the flags say.
type server struct {
	model, alias string
	context      int
	slots, slow  bool
	origins      string
	keys         []string
}

func run(args []string) error {
	var s server
	var host, port, keyFile string
	f := flag.NewFlagSet("llama-server", flag.ContinueOnError)
	for _, name := range []string{"m", "model"} {
		f.StringVar(&s.model, name, os.Getenv("LLAMA_ARG_MODEL"), "the model, a GGUF file")
	}
	for _, name := range []string{"a", "alias"} {
		f.StringVar(&s.alias, name, os.Getenv("LLAMA_ARG_ALIAS"), "the model's name in answers")
	}
	for _, name := range []string{"c", "ctx-size"} {
		f.IntVar(&s.context, name, number("LLAMA_ARG_CTX_SIZE", 4096), "size of the context")
	}
	f.StringVar(&host, "host", or(os.Getenv("LLAMA_ARG_HOST"), "127.0.0.1"), "address to listen on, or a socket's path that ends in .sock")
	f.StringVar(&port, "port", or(os.Getenv("LLAMA_ARG_PORT"), "8080"), "port to listen on")
	f.Func("api-key", "keys, with commas between them", func(list string) error {
		s.keys = append(s.keys, strings.Split(list, ",")...)
		return nil
	})
	f.StringVar(&keyFile, "api-key-file", os.Getenv("LLAMA_ARG_API_KEY_FILE"), "file of keys, one a line")
	f.StringVar(&s.origins, "cors-origins", or(os.Getenv("LLAMA_ARG_CORS_ORIGINS"), "*"), "origins whose pages may read answers; localhost: those of this machine")
	s.slots = true
	for _, name := range []string{"offline", "no-ui", "no-webui", "jinja"} {
		f.Bool(name, false, "taken, and without effect here")
	}
	f.BoolFunc("no-slots", "no /slots", func(string) error { s.slots = false; return nil })
	for _, name := range []string{"t", "threads", "np", "parallel", "threads-http", "to", "timeout"} {
		f.Int(name, 0, "taken, and without effect here")
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("invalid argument: %s", f.Arg(0))
	}
	// As theirs: a variable that is set and empty is a key, too.
	if list, set := os.LookupEnv("LLAMA_API_KEY"); set && len(s.keys) == 0 {
		s.keys = strings.Split(list, ",")
	}
	if err := s.readKeys(keyFile); err != nil {
		return err
	}
	if err := isGGUF(s.model); err != nil {
		return err
	}
	if text, err := os.ReadFile(s.model); err == nil {
		s.slow = bytes.HasSuffix(text, []byte("which never loads")) // testutil.SlowModel
	}
	if s.alias == "" {
		s.alias = filepath.Base(s.model)
	}
	network, address := "tcp", net.JoinHostPort(host, port)
	if strings.HasSuffix(host, ".sock") {
		network, address = "unix", host // which must not be there yet, as with theirs
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("couldn't bind HTTP server socket, hostname: %s, port: %s: %w", host, port, err)
	}
	fmt.Fprintf(os.Stderr, "main: server is listening on %s\n", l.Addr())
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	served := make(chan error, 1)
	go func() {
		served <- (&http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}).Serve(l)
	}()
	select {
	case err := <-served:
		return err
	case <-ended: // theirs leaves the socket's file behind only when it is killed
		return l.Close()
	}
}

// readKeys adds the keys of a file, one a line, without empty lines and comments.
func (s *server) readKeys(file string) error {
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("failed to open file '%s'", file)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			s.keys = append(s.keys, line)
		}
	}
	return nil
}

// isGGUF refuses what doesn't begin as a GGUF file does: magic, then version 2 or 3.
func isGGUF(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("failed to load model: %w", err)
	}
	defer f.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("failed to load model '%s': %w", file, err)
	}
	if !bytes.HasPrefix(head, []byte("GGUF\x02\x00\x00\x00")) && !bytes.HasPrefix(head, []byte("GGUF\x03\x00\x00\x00")) {
		return fmt.Errorf("failed to load model '%s': invalid magic or version: %q, expected \"GGUF\"", file, head)
	}
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}
