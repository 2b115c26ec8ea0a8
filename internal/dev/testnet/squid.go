package testnet

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Squid is Debian's squid at an address of the internet, until the test ends. acls are the
// lines that its configuration includes, and login, as USER:PASSWORD, is whom it knows.
func (in *Internet) Squid(t testing.TB, at, acls, login string) *Squid {
	t.Helper()
	program := SquidProgram(t)
	dir, err := os.MkdirTemp("", "squid")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if u, err := user.Lookup("proxy"); err == nil { // as whom it runs
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		err = errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, uid, gid))
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	name, password, _ := strings.Cut(login, ":")
	sum := md5.Sum([]byte(password))
	s := &Squid{log: filepath.Join(dir, "access.log")}
	log := filepath.Join(dir, "cache.log")
	conf := write("squid.conf", strings.Join([]string{
		"http_port " + at,
		"pid_filename none",
		"cache_log " + log,
		"logformat asked %rm %ru %un %>Hs",
		"access_log stdio:" + s.log + " asked",
		"dns_nameservers " + DNS,
		"hosts_file none",
		"visible_hostname squid.example", // or it looks the machine's own name up
		"shutdown_lifetime 0 seconds",
		"negative_dns_ttl 1 second",
		"connect_timeout 2 seconds",
		"read_timeout 2 seconds",
		"connect_retries 0",
		"forward_max_tries 1",
		"pinger_enable off",
		"auth_param basic program /usr/lib/squid/basic_ncsa_auth " + write("passwords", name+":"+hex.EncodeToString(sum[:])+"\n"),
		"include " + write("acls.conf", acls),
	}, "\n")+"\n")
	cmd := exec.Command(program, "-N", "-f", conf)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := in.NS().Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("%s", text)
		}
	})
	for range 400 {
		text, _ := os.ReadFile(log)
		if bytes.Contains(text, []byte("Accepting HTTP")) {
			// One range inside another, for example: what was meant isn't what counts.
			if bytes.Contains(text, []byte("is ignored")) || bytes.Contains(text, []byte("ERROR: ")) {
				t.Errorf("squid has something against its configuration:\n%s", text)
			}
			return s
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatal(fmt.Errorf("squid ended: %w\n%s", err, text))
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("squid doesn't listen")
	return nil
}

// SquidProgram is the path of squid, which a test needs.
func SquidProgram(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("squid")
	if err != nil {
		program = "/usr/sbin/squid" // which isn't in every PATH
	}
	_, err = os.Stat(program)
	testutil.Require(t, err == nil, "there is no squid (scripts/need squid=squid)")
	return program
}

// Squid is a running squid.
type Squid struct{ log string }

// Asked returns what it was asked, in order: "CONNECT 198.51.100.10:443 USER 200", with - for
// no user.
func (s *Squid) Asked(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
