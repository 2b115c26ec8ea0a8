package app

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/workshop"
)

// probeTime bounds all tries in a worker: refusals are immediate.
const probeTime = time.Minute

// probe runs all tries of a worker by one program in it.
func (v *verification) probe(ctx context.Context, w *verify.Worker) {
	w.Seen, w.Unseen = runProbes(ctx, v.running, w.Name, verify.Probes(w))
}

// runProbes runs probes in a worker by one program, and returns what they say, or why
// they say nothing.
func runProbes(ctx context.Context, r *Running, worker string, probes []verify.Probe) (seen verify.Seen, unseen string) {
	within, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	command := []string{compose.InitPath, "probe"}
	for _, p := range probes {
		command = append(command, p.Text)
	}
	out, problem := &bounded{most: verify.MaxOutput}, &bounded{most: 4 << 10}
	_, err := runIn(within, r, worker, engine.ExecOptions{
		Command: command, Workdir: "/", Directory: r.Dir, Stdout: out, Stderr: problem,
	}, &Signs{})
	switch {
	case err != nil:
		return nil, plainText(EngineError(err))
	case within.Err() != nil:
		return nil, fmt.Sprintf("the probe didn't end in %v", probeTime)
	}
	if seen, err = verify.ParseSeen(out.Bytes(), probes); err != nil {
		unseen = err.Error()
		if text := bytes.TrimSpace(problem.Bytes()); len(text) > 0 {
			unseen += ": " + clip.Runes(string(text), 120)
		}
	}
	return seen, unseen
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// maxSearched bounds how many entries of a copy's source are looked at.
const maxSearched = 2000

// copied finds a file of a source that its copy leaves out, and one that it has.
func (v *verification) copied(m *workshop.Mount, started time.Time) (excluded, kept string) {
	source := m.Source.V
	if !filepath.IsAbs(source) {
		source = filepath.Join(v.view.c.Dir, source)
	}
	n := 0
	_ = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(source, path)
		if n++; err != nil || relErr != nil || n > maxSearched || excluded != "" && kept != "" {
			return fs.SkipAll
		}
		if rel == "." {
			return nil
		}
		if compose.Excluded(m.Exclude, filepath.ToSlash(rel)) {
			if excluded == "" {
				excluded = filepath.ToSlash(rel)
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		// One that came later isn't in the copy.
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && kept == "" && info.ModTime().Before(started) {
			kept = filepath.ToSlash(rel)
		}
		return nil
	})
	return excluded, kept
}

// secretsOf are the values of the workers' secrets, as far as they can be read now.
func secretsOf(env *Env, c *Project) []string {
	return facts.SecretValues(c.Workshop, c.Dir, env.Lookup)
}

// generated are the files of the project that workshop writes.
func (v *verification) generated() (out []searched) {
	dir := filepath.Join(v.view.c.Dir, ".workshop", v.view.c.Workshop.Name.V)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || len(out) > 100 {
			return fs.SkipAll
		}
		if d.Type().IsRegular() {
			if b, err := boundedfile.Read(path, 1<<20); err == nil {
				out = append(out, searched{v.env.Shown(path), string(b)})
			}
		}
		return nil
	})
	return out
}

// canary is a listener of this program at an address of this machine: nothing of a
// worker may arrive there.
type canary struct {
	l        *net.TCPListener
	address  string
	own      bool
	accepted chan string
	others   []string
}

// newCanary listens at the first address of this machine that isn't a loopback's; nil
// where there is none.
func newCanary() *canary {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.To4() == nil || ip.IP.IsLoopback() || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: ip.IP})
		if err != nil {
			continue
		}
		c := &canary{l: l, address: l.Addr().String(), accepted: make(chan string, 1024)}
		go c.accept()
		c.own = c.reach()
		return c
	}
	return nil
}

// accept closes each connection at once, and notes from where it was.
func (c *canary) accept() {
	defer close(c.accepted)
	for {
		conn, err := c.l.Accept()
		if err != nil {
			return
		}
		select {
		case c.accepted <- conn.RemoteAddr().String():
		default: // full: there were others
		}
		conn.Close()
	}
}

// reach connects to the listener itself: the control.
func (c *canary) reach() bool {
	conn, err := net.DialTimeout("tcp4", c.address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	select {
	case from := <-c.accepted:
		return from == conn.LocalAddr().String()
	case <-time.After(time.Second):
		return false
	}
}

func (c *canary) close() {
	if c != nil {
		c.l.Close()
	}
}

// seen is what arrived.
func (c *canary) seen() verify.Canary {
	if c == nil {
		return verify.Canary{Why: "this machine has no address but loopback"}
	}
	for done := false; !done; {
		select {
		case from, open := <-c.accepted:
			if !open {
				done = true
			} else if !slices.Contains(c.others, from) {
				c.others = append(c.others, from)
			}
		default:
			done = true
		}
	}
	return verify.Canary{Address: c.address, Control: c.own, Others: len(c.others)}
}
