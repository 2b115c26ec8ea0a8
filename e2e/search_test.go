//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/e2e/scenario"
)

// tokenForms are those in which a token could be written down.
func tokenForms(token string) [][]byte {
	b := []byte(token)
	return [][]byte{
		b, []byte(hex.EncodeToString(b)), []byte(url.QueryEscape(token)), []byte(url.PathEscape(token)),
		[]byte(base64.StdEncoding.EncodeToString(b)), []byte(base64.StdEncoding.EncodeToString([]byte("Bearer " + token))),
		[]byte(base64.StdEncoding.EncodeToString([]byte("ann:" + token))), // as a password of hers
	}
}

// keyForms are those of an unencrypted private key of OpenSSH: the lines of its file, what
// they encode, and the secret itself.
func keyForms(s *scenario.Scenario, file string) [][]byte {
	s.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(text)
	private, ok := key.(*ed25519.PrivateKey)
	if err != nil || !ok {
		s.Fatalf("%T, %v", key, err)
	}
	lines := bytes.Fields(text[bytes.Index(text, []byte("\n")):bytes.LastIndex(text, []byte("\n-----"))])
	body, err := base64.StdEncoding.DecodeString(string(bytes.Join(lines, nil)))
	if err != nil {
		s.Fatal(err)
	}
	seed := private.Seed()
	// The first line is the same in all keys.
	return append(lines[1:], body, seed, []byte(hex.EncodeToString(seed)), []byte(base64.RawStdEncoding.EncodeToString(seed)[:40]))
}

// found is a place that has one of the texts of a search.
type found struct {
	where string
	form  int // the index of the text
}

// programBegan is before all that tests hide and look for.
var programBegan = time.Now()

// search looks for texts in all that a worker, or whoever reads our files, sees, and returns
// where it found which. Of the worker's files it leaves out those of its image, which are
// older than this program.
func search(s *scenario.Scenario, forms [][]byte) (all []found) {
	s.Helper()
	find := func(where string, text []byte) {
		for i, f := range forms {
			if bytes.Contains(text, f) {
				all = append(all, found{where, i})
			}
		}
	}
	for service, c := range s.Containers() {
		find("the log of "+service, []byte(s.Logs(service)))
		find("what the engine says of "+service, fmt.Append(nil, c))
		for _, pid := range s.Processes(service) {
			for _, name := range []string{"environ", "cmdline"} {
				text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
				find(service+"'s "+name, text)
			}
			if service == "worker" {
				memory(pid, func(text []byte) { find("the worker's memory", text) })
			}
		}
	}
	proc := filepath.Join("/proc", strconv.Itoa(brokerOf(s, s.Project)))
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join(proc, name))
		if err != nil {
			s.Error(err)
		}
		find("the broker's "+name, text)
	}
	if limits, _ := os.ReadFile(filepath.Join(proc, "limits")); !bytes.Contains(limits, []byte("Max core file size        0")) {
		s.Errorf("the broker may write a core file:\n%s", limits)
	}
	log, err := os.Readlink(filepath.Join(proc, "fd", brokerLog(proc)))
	if err != nil {
		s.Fatal(err)
	}
	dirs := []string{s.Dir, filepath.Dir(log)}
	for _, e := range s.Program(s.TB.Context(), "/bin/true").Env {
		name, value, _ := strings.Cut(e, "=")
		if name == "XDG_STATE_HOME" || name == "XDG_RUNTIME_DIR" {
			dirs = append(dirs, value)
		}
	}
	for _, dir := range append(dirs, filepath.Join(s.RootOf("guard"), "run"), filepath.Join(s.RootOf("guard"), "tmp")) {
		files(dir, time.Time{}, find)
	}
	files(s.RootOf("worker")+"/", programBegan, find) // the slash is for the link that it is
	s.Sees("worker", "env "+strings.ToUpper(s.Project)+" -> unset")
	return all
}

// files calls each for the regular files of a directory that were changed since a time. Of a
// root it leaves out what isn't files.
func files(dir string, since time.Time, each func(path string, text []byte)) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); slices.Contains([]string{"proc", "sys"}, name) {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		changed := info.Sys().(*syscall.Stat_t).Ctim // no program can set it back
		if time.Unix(changed.Sec, changed.Nsec).Before(since) {
			return nil
		}
		if text, err := os.ReadFile(path); err == nil {
			each(path, text)
		}
		return nil
	})
}

// memory calls each for what a process has in memory that it writes.
func memory(pid int, each func(text []byte)) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	maps, err := os.Open(filepath.Join(proc, "maps"))
	if err != nil {
		return
	}
	defer maps.Close()
	mem, err := os.Open(filepath.Join(proc, "mem"))
	if err != nil {
		return
	}
	defer mem.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); n < 3 || !strings.HasPrefix(mode, "rw") || to-from > 64<<20 {
			continue
		}
		text := make([]byte, to-from)
		n, _ := mem.ReadAt(text, from)
		each(text[:n])
	}
}
